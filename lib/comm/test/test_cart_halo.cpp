// SPDX-License-Identifier: BSD-3-Clause
// Tests halos from Cartesian communicators: each ghost against its global coordinates, by every
// method, and what is refused.
#include "comm/halo/cart_halo.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory_resource>
#include <optional>
#include <string>
#include <vector>

#include "comm/node/shared_window.hpp"
#include "world.hpp"

namespace halocline::comm {
namespace {

using Lengths = std::array<std::int64_t, kMostCartAxes>;

/// Holds a Cartesian communicator of all ranks, and the place of this rank in it.
struct Cart {
  MPI_Comm comm = MPI_COMM_NULL;
  int axes;
  std::array<int, kMostCartAxes> ranks{}, periodic{}, here{};

  Cart(int dimensions, int periodic_mask) : axes(dimensions) {
    MPI_Dims_create(world_size(), axes, ranks.data());
    for (int axis = 0; axis < axes; ++axis)
      periodic[static_cast<std::size_t>(axis)] = periodic_mask >> axis & 1;
    MPI_Cart_create(MPI_COMM_WORLD, axes, ranks.data(), periodic.data(), 0, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Cart_coords(comm, world_rank(), axes, here.data());
  }
  Cart(const Cart&) = delete;
  Cart& operator=(const Cart&) = delete;
  ~Cart() { MPI_Comm_free(&comm); }
};

/// Lists elements, each of one or two words. The second word of `gap` belongs to no element.
enum class Element { one, pair, gap };

/// Holds a field whose points have their global numbers.
class Numbered {
 public:
  Numbered(const Cart& cart, Element element, int order, const Lengths& low, const Lengths& high,
           int first_number, std::pmr::memory_resource* memory)
      : cart_(cart), element_(element), first_number_(first_number), words_(memory) {
    MPI_Datatype type = MPI_INT32_T;
    if (element == Element::pair) MPI_Type_contiguous(2, MPI_INT32_T, &type);
    if (element == Element::gap) MPI_Type_create_resized(MPI_INT32_T, 0, 8, &type);
    type_ = type;
    field_.element = type;
    field_.order = order;
    field_.low = low;
    field_.high = high;
    std::size_t points = 1;
    for (std::size_t axis = 0; axis < axes(); ++axis) {
      field_.owned[axis] = owned(axis, cart.here[axis]);
      points *= static_cast<std::size_t>(stored(axis));
    }
    words_.resize(points * words_of_point());
    field_.buffer = words_.data();
  }
  Numbered(const Numbered&) = delete;
  Numbered& operator=(const Numbered&) = delete;
  ~Numbered() {
    if (element_ != Element::one) MPI_Type_free(&type_);
  }

  const CartField& field() const { return field_; }

  /// Sets owned points to their numbers, and all else to poison.
  void reset() {
    const auto values = expected(0);
    words_.assign(values.begin(), values.end());
  }

  /// Tells if the ghosts along at most `most_axes` axes are right, and nothing else has changed.
  bool is_right(int most_axes) const {
    const auto wanted = expected(most_axes);
    return std::equal(wanted.begin(), wanted.end(), words_.begin(), words_.end());
  }

 private:
  static std::int32_t poison() { return -1 - world_rank(); }
  std::size_t axes() const { return static_cast<std::size_t>(cart_.axes); }
  std::size_t words_of_point() const { return element_ == Element::one ? 1 : 2; }
  std::int64_t stored(std::size_t axis) const {
    return field_.low[axis] + field_.owned[axis] + field_.high[axis];
  }
  // Returns another length in each place along an axis.
  static std::int64_t owned(std::size_t axis, int place) {
    return 3 + static_cast<std::int64_t>(axis) % 2 + place % 2;
  }
  static std::int64_t begin(std::size_t axis, int place) {
    std::int64_t out = 0;
    for (int before = 0; before < place; ++before) out += owned(axis, before);
    return out;
  }

  // Returns all words after an exchange that fills ghosts along at most `most_axes` axes.
  std::vector<std::int32_t> expected(int most_axes) const {
    std::vector<std::int32_t> out(words_.size(), poison());
    for (std::size_t i = 0; i < out.size() / words_of_point(); ++i) {
      auto left = static_cast<std::int64_t>(i);
      int steps = 0;
      std::int64_t number = first_number_;
      bool is_outside = false;
      Lengths at{};
      for (std::size_t k = 0; k < axes(); ++k) {
        const auto axis = field_.order == MPI_ORDER_C ? axes() - 1 - k : k;
        at[axis] = left % stored(axis);
        left /= stored(axis);
      }
      for (std::size_t axis = 0; axis < axes(); ++axis) {
        const auto length = begin(axis, cart_.ranks[axis]), inside = at[axis] - field_.low[axis];
        if (inside < 0 || inside >= field_.owned[axis]) ++steps;
        auto global = begin(axis, cart_.here[axis]) + inside;
        if (global < 0 || global >= length) is_outside |= cart_.periodic[axis] == 0;
        global = (global + length) % length;
        number = number * length + global;
      }
      if (is_outside || steps > most_axes) continue;
      out[i * words_of_point()] = static_cast<std::int32_t>(number);
      if (element_ == Element::pair) out[i * 2 + 1] = static_cast<std::int32_t>(-number);
    }
    return out;
  }

  const Cart& cart_;
  Element element_;
  int first_number_;
  MPI_Datatype type_;
  CartField field_;
  std::pmr::vector<std::int32_t> words_;
};

constexpr Lengths kOne{1, 1, 1, 1}, kLow{2, 0, 1, 1}, kHigh{1, 3, 0, 2};

class CartHalos : public testing::TestWithParam<Exchange> {
 protected:
  void SetUp() override {
    if (GetParam() == Exchange::shared || GetParam() == Exchange::automatic)
      window_.emplace(MPI_COMM_WORLD, 1 << 20);
  }
  ExchangePlan::Options options() {
    ExchangePlan::Options out;
    if (window_) out.windows = {&*window_};
    return out;
  }
  /// Returns memory for fields. A call may reuse the memory of earlier calls.
  std::pmr::memory_resource* memory() {
    if (!window_) return std::pmr::get_default_resource();
    in_window_.emplace(window_->data(), static_cast<std::size_t>(window_->bytes()),
                       std::pmr::null_memory_resource());
    return &*in_window_;
  }

 private:
  std::optional<SharedWindow> window_;
  std::optional<std::pmr::monotonic_buffer_resource> in_window_;
};

TEST_P(CartHalos, FillEveryGhost) {
  for (int axes = 1; axes <= kMostCartAxes; ++axes)
    for (const int periodic : {15, 0, 5})
      for (const int order : {MPI_ORDER_C, MPI_ORDER_FORTRAN})
        for (const bool is_uneven : {false, true})
          for (const int most_axes : {1, 2, kMostCartAxes}) {
            const Cart cart(axes, periodic);
            Numbered numbered(cart, Element::one, order, is_uneven ? kLow : kOne,
                              is_uneven ? kHigh : kOne, 0, memory());
            CartHalo halo(cart.comm, {numbered.field()}, GetParam(), most_axes, options());
            for (int i = 0; i < 2; ++i) {
              numbered.reset();
              halo.start().finish();
              EXPECT_TRUE(numbered.is_right(most_axes))
                  << axes << " axes, periodic " << periodic << ", C " << (order == MPI_ORDER_C)
                  << ", uneven " << is_uneven << ", at most " << most_axes;
              MPI_Barrier(MPI_COMM_WORLD);  // before a rank writes what a partner compares
            }
          }
}

TEST_P(CartHalos, CarrySeveralFields) {
  const Cart cart(3, 6);
  auto* const of = memory();
  Numbered a(cart, Element::pair, MPI_ORDER_C, kOne, kOne, 1, of);
  Numbered b(cart, Element::gap, MPI_ORDER_FORTRAN, kLow, kHigh, 2, of);
  Numbered c(cart, Element::one, MPI_ORDER_C, {}, kOne, 3, of);
  CartHalo halo(cart.comm, {a.field(), b.field(), c.field()}, GetParam(), 3, options());
  for (auto* const one : {&a, &b, &c}) one->reset();
  halo.start().finish();
  for (const auto* const one : {&a, &b, &c}) EXPECT_TRUE(one->is_right(3));
  EXPECT_LT(halo.plan().traffic().messages, world_size());  // one for each other rank
}

TEST_P(CartHalos, SwapArrays) {
  const Cart cart(2, 3);
  auto* const of = memory();
  Numbered now(cart, Element::one, MPI_ORDER_C, kOne, kOne, 1, of);
  Numbered next(cart, Element::one, MPI_ORDER_C, kOne, kOne, 2, of);
  Numbered other(cart, Element::one, MPI_ORDER_C, kOne, kOne, 3, of);  // has one array
  auto both = now.field();
  both.swapped = next.field().buffer;
  CartHalo halo(cart.comm, {both, other.field()}, GetParam(), 2, options());
  for (int step = 0; step < 4; ++step) {
    for (auto* const one : {&now, &next, &other}) one->reset();
    MPI_Barrier(MPI_COMM_WORLD);
    halo.start().finish();
    EXPECT_TRUE(now.is_right(step % 2 == 0 ? 2 : 0));
    EXPECT_TRUE(next.is_right(step % 2 == 0 ? 0 : 2));
    EXPECT_TRUE(other.is_right(2));
    MPI_Barrier(MPI_COMM_WORLD);
    halo.swap();
  }
}

std::vector<Exchange> possible() {
  std::vector<Exchange> out;
  for (const auto exchange : all_exchanges())
    if (why_not_available(exchange).empty()) out.push_back(exchange);
  return out;
}
INSTANTIATE_TEST_SUITE_P(Exchange, CartHalos, testing::ValuesIn(possible()), [](const auto& test) {
  std::string out(name(test.param));
  std::replace(out.begin(), out.end(), '-', '_');
  return out;
});

TEST(CartHalo, SwapsNothingWithoutASecondArray) {
  const Cart cart(1, 1);
  Numbered numbered(cart, Element::one, MPI_ORDER_C, kOne, kOne, 0,
                    std::pmr::get_default_resource());
  CartHalo halo(cart.comm, {numbered.field()}, Exchange::p2p);
  EXPECT_THROW(halo.swap(), ConfigError);
  numbered.reset();
  halo.start().finish();
  EXPECT_TRUE(numbered.is_right(1));
}

TEST(CartHalo, ListsJobsInTheOrderOfMpi) {
  const Cart cart(3, 5);  // axis 1 is open
  std::vector<double> array(125);
  const CartField field{
      .buffer = array.data(), .owned = {3, 3, 3}, .low = {1, 1, 1}, .high = {1, 1, 1}};
  for (const auto& [most_axes, directions] : {std::pair{1, 6}, {2, 18}, {3, 26}}) {
    const auto list = cart_halo_jobs(cart.comm, {field, field}, most_axes);
    ASSERT_EQ(std::ssize(list.jobs), 2 * directions);
    for (int axis = 0; axis < 3; ++axis) {
      int below = 0, above = 0;
      MPI_Cart_shift(cart.comm, axis, 1, &below, &above);
      for (const std::size_t of_field : {0, 1}) {
        const auto at = static_cast<std::size_t>(4 * axis) + of_field;
        EXPECT_EQ(list.jobs[at].partner, below);
        EXPECT_EQ(list.jobs[at + 2].partner, above);
        // A tag has the direction in base 3: 0, 1 or 2 along axis 0, then axis 1, then axis 2.
        const int weight = axis == 0 ? 1 : axis == 1 ? 3 : 9;
        EXPECT_EQ(list.jobs[at].send_tag / 2, 13 - weight);
        EXPECT_EQ(list.jobs[at + 2].send_tag / 2, 13 + weight);
      }
    }
  }
}

TEST(CartHalo, NeedsNoFields) {
  const Cart cart(2, 1);
  CartHalo(cart.comm, {}, Exchange::p2p).start().finish();
}

// Expects the same error on every rank.
void expect_error(MPI_Comm comm, const std::vector<CartField>& fields, const std::string& text,
                  int most_axes = 3) {
  try {
    const CartHalo halo(comm, fields, Exchange::p2p, most_axes);
    ADD_FAILURE() << "no error, not '" << text << "'";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  }
}

// The last rank alone is wrong.
TEST(CartHalo, RefusesWhatCannotBeExchanged) {
  const Cart cart(2, 3);
  std::vector<double> array(1000);
  const CartField right{.buffer = array.data(), .owned = {4, 5}, .low = {1, 2}, .high = {2, 1}};
  const auto expect = [&](const std::string& text, const std::function<void(CartField&)>& spoil) {
    auto wrong = right;
    if (world_rank() == world_size() - 1) spoil(wrong);
    expect_error(cart.comm, {right, wrong}, text);
  };
  expect("field 1 has no buffer", [](CartField& f) { f.buffer = nullptr; });
  expect("field 1 has no element", [](CartField& f) { f.element = MPI_DATATYPE_NULL; });
  expect("field 1 has no order", [](CartField& f) { f.order = 77; });
  expect("field 1 along axis 1 has a negative", [](CartField& f) { f.low[1] = -1; });
  expect("field 1 along axis 0 owns 1 points, and a neighbour needs 2",
         [](CartField& f) { f.owned[0] = 1; });
  expect("length of an axis", [](CartField& f) { f.owned[1] = std::int64_t{1} << 31; });
  expect_error(cart.comm, {right}, "give 1 or more", 0);
  expect_error(MPI_COMM_WORLD, {right}, "MPI_Cart_create");
  if (world_size() == 1) return;
  expect("number of low ghost points of field 1 along axis 1 differs",
         [](CartField& f) { f.low[1] = 1; });
  expect("number of high ghost points of field 1 along axis 0 differs",
         [](CartField& f) { f.high[0] = 1; });
  expect("order of field 1 differs", [](CartField& f) { f.order = MPI_ORDER_FORTRAN; });
  expect("bytes of an element of field 1 differs", [](CartField& f) { f.element = MPI_FLOAT; });
  expect("number of swapped arrays of field 1 differs", [](CartField& f) { f.swapped = f.buffer; });
  // Two ranks lie along axis 0, and share the points along axis 1.
  expect("field 1 along axis 1 owns", [](CartField& f) { f.owned[1] = 6; });
  std::vector<CartField> fields(world_rank() == 0 ? 1 : 2, right);
  expect_error(cart.comm, fields, "number of fields differs");
  expect_error(cart.comm, {right}, "`most_axes` differs", world_rank() == 0 ? 1 : 2);
}

}  // namespace
}  // namespace halocline::comm
