# shellcheck shell=bash disable=SC2034,SC2154
# Measures all kinds of points in minutes on a workstation with two cores: 1, 2 and 4 ranks with one
# thread each. Uses more cores if there are more.
title='Halo exchange on one machine' config=configs/study-local.toml
group weak weak '64^3 points per rank'
group strong strong '96^3 points in all'
group methods none '64^3 points per rank, at once and axis by axis'
group gather none 'ranks in order and in random order'
for ranks in 1 2 4; do
  point weak 1 $ranks compare
  point weak 1 $ranks run
  point strong 1 $ranks compare --global 96 96 96
  point strong 1 $ranks run --global 96 96 96
done
for ranks in 2 4; do
  point methods 1 $ranks compare --shape direct,axes
  point gather 1 $ranks gather --ranks-per-node $((ranks / 2))
done
