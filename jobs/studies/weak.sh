# shellcheck shell=bash disable=SC2034,SC2154
# Measures weak scaling, as Figure 12 of [PEA21]: 256^3 points of every rank, every method, and the
# stencil's share.
title='Weak scaling of the halo exchange' config=configs/tempi-fig12.toml
group weak weak '256^3 points per rank'
for ((n = 1; n <= 16384; n *= 2)); do
  point weak "$n" "$ranks_per_node" compare --memory "$memory"
  point weak "$n" "$ranks_per_node" run --memory "$memory"
done
