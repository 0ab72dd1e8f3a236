# shellcheck shell=bash disable=SC2034,SC2154
# Compares all methods in one allocation: both layouts, both shapes, and faces alone, on one node,
# two, and more.
title='Methods of the halo exchange side by side' config=configs/tempi-fig12.toml
group soa none '256^3 points per rank, an array per field'
group aos none '256^3 points per rank, fields of a point side by side'
group faces none '256^3 points per rank, 6 neighbours'
for n in 1 2 8 64; do
  point soa "$n" "$ranks_per_node" compare --memory "$memory" --shape direct,axes
  point aos "$n" "$ranks_per_node" compare --memory "$memory" --shape direct,axes --layout aos
  point faces "$n" "$ranks_per_node" compare --memory "$memory" --neighbors 6
done
