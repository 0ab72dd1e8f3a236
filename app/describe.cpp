// SPDX-License-Identifier: BSD-3-Clause
#include "describe.hpp"

#include "support/mpi_check.hpp"
#include "support/narrow.hpp"

namespace halocline::app {

namespace {

int to_int(std::int64_t value) {
  return checked_int(value, "extent of a halo region");
}

}  // namespace

MPI_Datatype mpi_type_of(Element element) {
  switch (element) {
    case Element::float32:
      return MPI_FLOAT;
    case Element::complex64:
      return MPI_C_DOUBLE_COMPLEX;
    case Element::complex32:
      return MPI_C_FLOAT_COMPLEX;
    case Element::float64:
      break;
  }
  return MPI_DOUBLE;
}

RegionTypes::RegionTypes(const Domain& domain, Describe describe, MPI_Datatype element,
                         std::vector<void*> addresses)
    : describe_(describe),
      extents_(domain.extents_in_memory()),
      addresses_(std::move(addresses)),
      point_bytes_(std::int64_t{domain.element_bytes} * domain.elements_per_point()) {
  MPI_Datatype point = MPI_DATATYPE_NULL;
  if (domain.layout == Layout::aos) {
    HALOCLINE_MPI(MPI_Type_contiguous(domain.fields, element, &point));
  } else {
    HALOCLINE_MPI(MPI_Type_dup(element, &point));
  }
  point_ = dtype::Datatype(point);
}

comm::Region RegionTypes::operator()(int array, const comm::Box& box) {
  const auto& found = described(box);
  auto* first = static_cast<std::byte*>(addresses_[static_cast<std::size_t>(array)]);
  return {first + found.offset, 1, found.type.get()};
}

const RegionTypes::Described& RegionTypes::described(const comm::Box& box) {
  const std::pair key{box.begin, box.extent};
  const auto found = types_.find(key);
  return found != types_.end() ? found->second : types_.emplace(key, make(box)).first->second;
}

RegionTypes::Described RegionTypes::make(const comm::Box& box) const {
  const auto [nx, ny, nz] = box.extent;
  const auto row_bytes = extents_[0] * point_bytes_, plane_bytes = extents_[1] * row_bytes;
  const auto corner =
      box.begin[2] * plane_bytes + box.begin[1] * row_bytes + box.begin[0] * point_bytes_;

  MPI_Datatype type = MPI_DATATYPE_NULL;
  std::int64_t offset = corner;  // only the subarray counts from the array's first byte and sets
                                 // this to 0
  const auto plane_vector = [&] {
    MPI_Datatype plane = MPI_DATATYPE_NULL;
    HALOCLINE_MPI(
        MPI_Type_vector(to_int(ny), to_int(nx), to_int(extents_[0]), point_.get(), &plane));
    return dtype::Datatype(plane);
  };
  switch (describe_) {
    case Describe::subarray: {
      const int sizes[] = {to_int(extents_[2]), to_int(extents_[1]), to_int(extents_[0])};
      const int subsizes[] = {to_int(nz), to_int(ny), to_int(nx)};
      const int starts[] = {to_int(box.begin[2]), to_int(box.begin[1]), to_int(box.begin[0])};
      HALOCLINE_MPI(
          MPI_Type_create_subarray(3, sizes, subsizes, starts, MPI_ORDER_C, point_.get(), &type));
      offset = 0;
      break;
    }
    case Describe::vector: {
      const auto plane = plane_vector();
      HALOCLINE_MPI(MPI_Type_create_hvector(to_int(nz), 1, plane_bytes, plane.get(), &type));
      break;
    }
    case Describe::hvector: {
      MPI_Datatype handle = MPI_DATATYPE_NULL;
      HALOCLINE_MPI(MPI_Type_contiguous(to_int(nx), point_.get(), &handle));
      const dtype::Datatype row(handle);
      HALOCLINE_MPI(MPI_Type_create_hvector(to_int(ny), 1, row_bytes, row.get(), &handle));
      const dtype::Datatype plane(handle);
      HALOCLINE_MPI(MPI_Type_create_hvector(to_int(nz), 1, plane_bytes, plane.get(), &type));
      break;
    }
    case Describe::hindexed: {
      std::vector<MPI_Aint> rows;
      for (std::int64_t z = 0; z < nz; ++z)
        for (std::int64_t y = 0; y < ny; ++y) rows.push_back(z * plane_bytes + y * row_bytes);
      const std::vector<int> lengths(rows.size(), to_int(nx));
      HALOCLINE_MPI(MPI_Type_create_hindexed(to_int(std::ssize(rows)), lengths.data(), rows.data(),
                                             point_.get(), &type));
      break;
    }
    case Describe::structure: {
      const auto plane = plane_vector();
      const auto planes = static_cast<std::size_t>(nz);
      std::vector<MPI_Aint> starts;
      for (std::int64_t z = 0; z < nz; ++z) starts.push_back(z * plane_bytes);
      const std::vector<int> ones(planes, 1);
      const std::vector<MPI_Datatype> types(planes, plane.get());
      HALOCLINE_MPI(
          MPI_Type_create_struct(to_int(nz), ones.data(), starts.data(), types.data(), &type));
      break;
    }
  }
  Described out{dtype::Datatype(type), offset};
  HALOCLINE_MPI(MPI_Type_commit(&type));
  return out;
}

}  // namespace halocline::app
