// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/datatype.hpp"

#include <algorithm>

#include "dtype/support/mpi_check.hpp"
#include "dtype/support/narrow.hpp"
#include "dtype/support/overload.hpp"

namespace halocline::dtype {

namespace {

// Predefined types are neither committed nor freed; the parametrised Fortran types are predefined,
// too, although they have a combiner of their own (MPI-3.1 section 17.2.5).
bool is_predefined(int combiner) {
  return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL ||
         combiner == MPI_COMBINER_F90_COMPLEX || combiner == MPI_COMBINER_F90_INTEGER;
}

std::vector<int> ints(const std::vector<std::int64_t>& values, const char* what) {
  std::vector<int> out;
  out.reserve(values.size());
  for (const auto value : values) out.push_back(checked_int(value, what));
  return out;
}

std::vector<MPI_Aint> addresses(const std::vector<std::int64_t>& values) {
  return {values.begin(), values.end()};
}

int count_of(std::int64_t value) {
  return checked_int(value, "count");
}
int blocklength_of(std::int64_t value) {
  return checked_int(value, "blocklength");
}

// Not committed: only the outermost type of an expression is.
Datatype build(const TypeExpr& expr) {
  MPI_Datatype out = MPI_DATATYPE_NULL;
  std::visit(
      Overload{
          [&](const Named& t) { out = t.type->handle; },
          [&](const Contiguous& t) {
            const auto old = build(*t.old);
            HALOCLINE_MPI(MPI_Type_contiguous(count_of(t.count), old.get(), &out));
          },
          [&](const Vector& t) {
            const auto old = build(*t.old);
            HALOCLINE_MPI(MPI_Type_vector(count_of(t.count), blocklength_of(t.blocklength),
                                          checked_int(t.stride, "stride"), old.get(), &out));
          },
          [&](const Hvector& t) {
            const auto old = build(*t.old);
            HALOCLINE_MPI(MPI_Type_create_hvector(count_of(t.count), blocklength_of(t.blocklength),
                                                  t.stride, old.get(), &out));
          },
          [&](const Indexed& t) {
            const auto old = build(*t.old);
            const auto lengths = ints(t.blocklengths, "blocklength");
            const auto displacements = ints(t.displacements, "displacement");
            HALOCLINE_MPI(MPI_Type_indexed(count_of(std::ssize(lengths)), lengths.data(),
                                           displacements.data(), old.get(), &out));
          },
          [&](const Hindexed& t) {
            const auto old = build(*t.old);
            const auto lengths = ints(t.blocklengths, "blocklength");
            const auto displacements = addresses(t.displacements);
            HALOCLINE_MPI(MPI_Type_create_hindexed(count_of(std::ssize(lengths)), lengths.data(),
                                                   displacements.data(), old.get(), &out));
          },
          [&](const IndexedBlock& t) {
            const auto old = build(*t.old);
            const auto displacements = ints(t.displacements, "displacement");
            HALOCLINE_MPI(MPI_Type_create_indexed_block(count_of(std::ssize(displacements)),
                                                        blocklength_of(t.blocklength),
                                                        displacements.data(), old.get(), &out));
          },
          [&](const HindexedBlock& t) {
            const auto old = build(*t.old);
            const auto displacements = addresses(t.displacements);
            HALOCLINE_MPI(MPI_Type_create_hindexed_block(count_of(std::ssize(displacements)),
                                                         blocklength_of(t.blocklength),
                                                         displacements.data(), old.get(), &out));
          },
          [&](const Struct& t) {
            std::vector<Datatype> olds;
            std::vector<MPI_Datatype> handles;
            for (const auto& old : t.old) handles.push_back(olds.emplace_back(build(*old)).get());
            const auto lengths = ints(t.blocklengths, "blocklength");
            const auto displacements = addresses(t.displacements);
            HALOCLINE_MPI(MPI_Type_create_struct(count_of(std::ssize(lengths)), lengths.data(),
                                                 displacements.data(), handles.data(), &out));
          },
          [&](const Subarray& t) {
            const auto old = build(*t.old);
            const auto sizes = ints(t.sizes, "size"), subsizes = ints(t.subsizes, "subsize"),
                       starts = ints(t.starts, "start");
            HALOCLINE_MPI(MPI_Type_create_subarray(
                count_of(std::ssize(sizes)), sizes.data(), subsizes.data(), starts.data(),
                t.order == Order::c ? MPI_ORDER_C : MPI_ORDER_FORTRAN, old.get(), &out));
          },
          [&](const Resized& t) {
            const auto old = build(*t.old);
            HALOCLINE_MPI(MPI_Type_create_resized(old.get(), t.lb, t.extent, &out));
          },
          [&](const Dup& t) {
            const auto old = build(*t.old);
            HALOCLINE_MPI(MPI_Type_dup(old.get(), &out));
          },
      },
      expr.node);
  return Datatype(out);
}

std::vector<std::int64_t> slice(const std::vector<int>& from, std::size_t begin,
                                std::size_t length) {
  return {from.begin() + static_cast<std::ptrdiff_t>(begin),
          from.begin() + static_cast<std::ptrdiff_t>(begin + length)};
}

// The nested types in the order in which MPI listed them, or the first one that has no expression.
Result<std::vector<TypeExprPtr>> decode_all(const std::vector<Datatype>& handles) {
  std::vector<TypeExprPtr> out;
  for (const auto& handle : handles) {
    auto decoded = decode(handle.get());
    if (auto* unsupported = std::get_if<UnsupportedDatatype>(&decoded))
      return std::move(*unsupported);
    out.push_back(std::get<TypeExprPtr>(std::move(decoded)));
  }
  return out;
}

}  // namespace

Datatype::~Datatype() {
  if (handle_ == MPI_DATATYPE_NULL) return;
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized) return;
  int integers = 0, addresses = 0, types = 0, combiner = MPI_COMBINER_NAMED;
  MPI_Type_get_envelope(handle_, &integers, &addresses, &types, &combiner);
  if (!is_predefined(combiner)) MPI_Type_free(&handle_);
}

Datatype make_datatype(const TypeExpr& expr) {
  Datatype type = build(expr);
  if (std::holds_alternative<Named>(expr.node)) return type;
  MPI_Datatype handle = type.get();
  HALOCLINE_MPI(MPI_Type_commit(&handle));
  return type;
}

Result<TypeExprPtr> decode(MPI_Datatype handle) {
  int integer_count = 0, address_count = 0, type_count = 0, combiner = 0;
  HALOCLINE_MPI(
      MPI_Type_get_envelope(handle, &integer_count, &address_count, &type_count, &combiner));
  if (combiner == MPI_COMBINER_NAMED) {
    if (const auto* found = find_named_type(handle)) return type(Named{found});
    char name[MPI_MAX_OBJECT_NAME] = "";
    int length = 0;
    HALOCLINE_MPI(MPI_Type_get_name(handle, name, &length));
    return UnsupportedDatatype("predefined type '" + std::string(name) +
                               "' is not a C type that Halocline knows");
  }

  const auto size = [](int n) { return static_cast<std::size_t>(n); };
  std::vector<int> i(size(integer_count));
  std::vector<MPI_Aint> a(size(address_count));
  std::vector<MPI_Datatype> raw(size(type_count));
  HALOCLINE_MPI(MPI_Type_get_contents(handle, integer_count, address_count, type_count, i.data(),
                                      a.data(), raw.data()));
  const std::vector<Datatype> handles(raw.begin(), raw.end());
  auto decoded = decode_all(handles);
  if (auto* unsupported = std::get_if<UnsupportedDatatype>(&decoded))
    return std::move(*unsupported);
  const auto& old = std::get<std::vector<TypeExprPtr>>(decoded);
  const auto displacements = [&] { return std::vector<std::int64_t>(a.begin(), a.end()); };

  // The layout of the three arrays per combiner: MPI-3.1 section 4.1.13.
  switch (combiner) {
    case MPI_COMBINER_DUP:
      return type(Dup{old[0]});
    case MPI_COMBINER_CONTIGUOUS:
      return type(Contiguous{i[0], old[0]});
    case MPI_COMBINER_VECTOR:
      return type(Vector{i[0], i[1], i[2], old[0]});
    case MPI_COMBINER_HVECTOR:
      return type(Hvector{i[0], i[1], a[0], old[0]});
    case MPI_COMBINER_INDEXED: {
      const auto n = size(i[0]);
      return type(Indexed{slice(i, 1, n), slice(i, 1 + n, n), old[0]});
    }
    case MPI_COMBINER_HINDEXED:
      return type(Hindexed{slice(i, 1, size(i[0])), displacements(), old[0]});
    case MPI_COMBINER_INDEXED_BLOCK:
      return type(IndexedBlock{i[1], slice(i, 2, size(i[0])), old[0]});
    case MPI_COMBINER_HINDEXED_BLOCK:
      return type(HindexedBlock{i[1], displacements(), old[0]});
    case MPI_COMBINER_STRUCT:
      return type(Struct{slice(i, 1, size(i[0])), displacements(), old});
    case MPI_COMBINER_SUBARRAY: {
      const auto n = size(i[0]);
      return type(Subarray{i[1 + 3 * n] == MPI_ORDER_C ? Order::c : Order::fortran, slice(i, 1, n),
                           slice(i, 1 + n, n), slice(i, 1 + 2 * n, n), old[0]});
    }
    case MPI_COMBINER_RESIZED:
      return type(Resized{old[0], a[0], a[1]});
    default:
      return UnsupportedDatatype(
          "combiner " + std::to_string(combiner) +
          " (darray or a parametrised Fortran type) is not read by Halocline");
  }
}

}  // namespace halocline::dtype
