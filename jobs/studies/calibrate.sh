# shellcheck shell=bash disable=SC2034,SC2154
# Measures the system model of a node, and of two nodes with messages between them.
# HALOCLINE_MODEL=results/raw/calibrate/... uses it.
title='System model'
group calibrate none 'a node, two nodes'
for n in 1 2; do point calibrate "$n" "$ranks_per_node" calibrate; done
