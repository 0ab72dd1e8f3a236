#!/usr/bin/env bash
# Builds the manual and the reference of the library as one HTML site with a search box, in
# build/docs/html.
#   jobs/local/docs.sh
# The pages are README.md and those to which it leads. The reference is made of the docstrings of
# the installed headers. Needs Debian's Sphinx, MyST, Breathe, Doxygen and the theme Furo; as root,
# it installs them. Every warning is an error.
# Exit codes: 0, 1 if there is a warning, 2 bad input, 3 the environment failed.
set -euo pipefail
# shellcheck source=jobs/local/script.sh
source "$(dirname "$0")/script.sh"
cd "$(dirname "$0")/../.."
[[ $# -eq 0 ]] || { echo "docs.sh: takes no argument, not '$1': --help tells the rest" >&2; exit 2; }
source jobs/local/deps.sh
install_packages python3-sphinx python3-myst-parser python3-breathe doxygen furo
code=0
/usr/bin/python3 jobs/docs/site.py build/docs || code=$?
[[ ! -e build/docs/html/index.html ]] || echo "docs.sh: open build/docs/html/index.html"
exit $code
