# shellcheck shell=bash disable=SC2034,SC2154
# Measures hierarchical gathers as in Figure 3 of [TR14], which has 36 nodes with 16 ranks each.
title='Hierarchical gather' config=configs/gather-fig3.toml
group gather none '16 ranks per node'
for n in 2 4 8 16 36 64; do point gather "$n" 16 gather; done
