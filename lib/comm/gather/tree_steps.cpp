// SPDX-License-Identifier: BSD-3-Clause
#include "comm/gather/tree_steps.hpp"

#include <algorithm>
#include <bit>

namespace halocline::comm {

TreeForm choose_form(int size, std::int64_t block_bytes) {
  return size > 2 && block_bytes < kBinomialBytes ? TreeForm::binomial : TreeForm::linear;
}

TreeSteps tree_steps(TreeForm form, int size, int root, int rank) {
  const auto rank_at = [&](int position) { return (position + root) % size; };
  const int own = (rank - root + size) % size;
  TreeSteps out{{}, std::nullopt, {own, own + 1}};
  const auto receive = [&](int first, int last) {
    out.children.push_back({rank_at(first), {first, last}});
    out.blocks.last = last;
  };
  if (form == TreeForm::linear) {
    if (own > 0) out.parent = root;
    for (int at = 1; own == 0 && at < size; ++at) receive(at, at + 1);
    return out;
  }
  // Below position p are the 2^k positions from p on, if p has k trailing zeros. For each j < k, p
  // has a child p + 2^j, whose positions begin there.
  int step = 1;
  for (; (own & step) == 0 && own + step < size; step *= 2)
    receive(own + step, std::min(own + 2 * step, size));
  if (own > 0) out.parent = rank_at(own & (own - 1));
  return out;
}

int tree_rounds(TreeForm form, int size) {
  if (form == TreeForm::linear) return size - 1;
  return std::bit_width(static_cast<unsigned>(size - 1));
}

}  // namespace halocline::comm
