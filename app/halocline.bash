# Completes halocline in bash; made by jobs/docs/manual.py fill.
_halocline() {
  local word=${COMP_WORDS[COMP_CWORD]} flags=
  if ((COMP_CWORD == 1)); then
    mapfile -t COMPREPLY < <(compgen -W "run compare predict gather info calibrate inspect help" -- "$word")
    return
  fi
  case ${COMP_WORDS[1]} in
    run) flags="--local --global --decomposition --reorder --ranks-per-node --radius --fields --layout --element --periodic --memory --gpu-aware-mpi --physics --stencil --steps --stages --wide --overlap --progress --methods --shape --neighbors --messages --chunk-bytes --describe --packer --model --force-model --threads --seed --boundary --pad --pages --output-folder --series-every --checkpoint-every --restart --snapshot-every --snapshot-fields --slice-every --slice-fields --slice-axis --slice-at --output --csv --quiet --dry-run --config --heat.diffusion --mhd.spacing --mhd.dt --mhd.initial --mhd.amplitude --mhd.shell-radius --mhd.shell-width --mhd.entropy --mhd.magnetic --mhd.upwind --mhd.shock --mhd.gamma --mhd.cp --mhd.cs0 --mhd.lnrho0 --mhd.t0 --mhd.mu0 --mhd.nu --mhd.zeta --mhd.eta --mhd.conduction --mhd.b0x --mhd.b0y --mhd.b0z --mhd.forcing --mhd.forcing-k-min --mhd.forcing-k-max --mhd.forcing-helicity --mhd.astaroth-bulk --force-dt --help" ;;
    compare) flags="--local --global --decomposition --reorder --ranks-per-node --radius --fields --layout --element --periodic --memory --gpu-aware-mpi --physics --methods --shape --neighbors --messages --chunk-bytes --describe --packer --iterations --warmup --max-seconds --model --force-model --threads --seed --pad --pages --output --csv --plot --quiet --dry-run --config --help" ;;
    predict) flags="--local --global --decomposition --reorder --ranks-per-node --radius --fields --layout --element --periodic --memory --methods --shape --neighbors --nodes --traces --iterations --model --pad --output --csv --quiet --config --help" ;;
    gather) flags="--ranks-per-node --variants --order --sizes --root --iterations --warmup --max-seconds --seed --output --csv --quiet --dry-run --config --help" ;;
    info) flags="--ranks-per-node --gpu-aware-mpi --model --threads --json --config --help" ;;
    calibrate) flags="--gpu-aware-mpi --max-seconds --model --quiet --json --dry-run --config --help" ;;
    inspect) flags="--json --verbose --emit --displacements --typemap --config --help" ;;
    help) flags="run compare predict gather info calibrate inspect all json schema" ;;
  esac
  [[ $word != [!-]* || ${COMP_WORDS[1]} == help ]] && mapfile -t COMPREPLY < <(compgen -W "$flags" -- "$word")
}
complete -o default -F _halocline halocline
