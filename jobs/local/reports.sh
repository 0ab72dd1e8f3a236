#!/usr/bin/env bash
# Installs the Python packages of the reports (results/*.py) in .deps/reports: pandas,
# matplotlib and markdown-it-py, from PyPI. The scripts of this folder that end in a report call it.
# A batch job has no internet: call it where there is, before you submit.
#   jobs/local/reports.sh
# Exit codes: 0, 2 bad input, 3 the environment failed.
set -euo pipefail
# shellcheck source=jobs/local/script.sh
source "$(dirname "$0")/script.sh"
cd "$(dirname "$0")/../.."
[[ $# -eq 0 ]] || wrong_use "it takes no argument, not '$1'"
source jobs/local/deps.sh
install_reports
results/study.py --check
