#!/usr/bin/env bash
# Compares the exchange on many nodes by the model and by SimGrid: tables and a plot in
# results/mine/predict/.
#   jobs/simgrid/compare.sh [NAME [FLAG...]]       NAME (default: summit): configs/models/NAME.json; flags of halocline predict
# Without flags it predicts Figure 12 of [PEA21]: device memory, 6 ranks on each node, 256^3 points
# of each. The model goes to 16,384 nodes, SimGrid to 512 (ten minutes; NODES="2 4 8 16 32 64" takes
# one).
# Exit code: 0; 2 bad input; 3 SimGrid is not there, or failed.
set -euo pipefail
# shellcheck source=jobs/local/script.sh
source "$(dirname "$0")/../local/script.sh"
cd "$(dirname "$0")/../.."
name=${1-summit}; shift || true
[[ $# -gt 0 ]] || set -- --memory device --methods alltoallv:device --ranks-per-node 6 --local 256 256 256
halocline=build/release/app/halocline
[[ -x $halocline ]] || { echo "compare.sh: no $halocline: run jobs/local/build.sh release" >&2; exit 3; }
[[ -r configs/models/$name.json ]] || { echo "compare.sh: no configs/models/$name.json: give the name of a model there" >&2; exit 2; }
source jobs/local/env.sh
source jobs/local/deps.sh
install_reports
raw=results/raw/predict; mkdir -p "$raw"
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
predict=("$halocline" predict --model "configs/models/$name.json" "$@")
"${predict[@]}" --output "$work/predictions"
folders=()
for nodes in ${NODES:-2 4 8 16 32 64 128 256 512}; do
  folders+=("$work/$nodes")
  "${predict[@]}" --quiet --nodes "$nodes" --iterations 1 --traces "$work/$nodes"
done
jobs/simgrid/replay.sh --output "$raw/$name-simulated.jsonl" "${folders[@]}"
mv "$work/predictions" "$raw/$name.jsonl"
exec results/predict.py "$name"
