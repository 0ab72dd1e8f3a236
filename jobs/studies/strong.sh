# shellcheck shell=bash disable=SC2034,SC2154
# Measures strong scaling: 512^3 and 1024^3 points of all ranks together, as long as a rank has 16^3
# of them. 1024^3 begins with two nodes: fields and messages take about 110 GiB.
title='Strong scaling of the halo exchange' config=configs/tempi-fig12.toml
group strong-512 strong '512^3 points in all'
group strong-1024 strong '1024^3 points in all'
for edge in 512 1024; do
  for ((n = edge / 512; n <= 16384 && n * ranks_per_node <= (edge / 16) ** 3; n *= 2)); do
    point strong-$edge "$n" "$ranks_per_node" compare --global $edge $edge $edge --memory "$memory"
    point strong-$edge "$n" "$ranks_per_node" run --global $edge $edge $edge --memory "$memory"
  done
done
