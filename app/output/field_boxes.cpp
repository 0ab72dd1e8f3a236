// SPDX-License-Identifier: BSD-3-Clause
#include "field_boxes.hpp"

namespace halocline::app {

dtype::TypeExprPtr value_type(int bytes) {
  return dtype::named(bytes == sizeof(double) ? "double" : "float");
}

FieldBox field_box(const Domain& domain, int field, const comm::Box& box) {
  const bool is_soa = domain.layout == Layout::soa;
  const auto extents = domain.extents_in_memory();
  const auto start = [&](std::size_t axis) {
    return box.begin[axis] - domain.owned.begin[axis] + domain.halo.radius[axis];
  };
  const auto& [nx, ny, nz] = box.extent;
  return {is_soa ? field : 0, dtype::type(dtype::Subarray{
                                  dtype::Order::c,
                                  {extents[2], extents[1], extents[0], domain.elements_per_point()},
                                  {nz, ny, nx, 1},
                                  {start(2), start(1), start(0), is_soa ? 0 : field},
                                  value_type(domain.element_bytes)})};
}

dtype::TypeExprPtr box_in_array(const comm::Int3& whole, const comm::Box& box, int value_bytes) {
  return dtype::type(dtype::Subarray{dtype::Order::c,
                                     {whole[2], whole[1], whole[0]},
                                     {box.extent[2], box.extent[1], box.extent[0]},
                                     {box.begin[2], box.begin[1], box.begin[0]},
                                     value_type(value_bytes)});
}

}  // namespace halocline::app
