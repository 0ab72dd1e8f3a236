// SPDX-License-Identifier: BSD-3-Clause
#include "comm/fortran/fortran.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "comm/c/common.hpp"
#include "support/mpi_check.hpp"
#include "support/narrow.hpp"

namespace halocline::fortran {

namespace {

using c::guarded;
using c::require;

// Lists what `state` may be. The module gives no_buffer and in_place, halocline_f_look() the
// others.
enum State : int { usable = 0, in_place = 1, no_buffer = 2, gaps = 3, no_memory = 4 };

struct Dimension {
  std::ptrdiff_t lower, extent, stride;
};

// Is the descriptor of gfortran and flang. Other compilers have other members behind `version`.
struct FullArray {
  void* address;
  std::size_t element_bytes;
  int version;
  std::uint8_t rank;
  std::uint8_t others[3];
  Dimension dimension[halocline_f_most_axes];
};
static_assert(offsetof(FullArray, dimension) == 24);

// Finds the first dimension with a gap before the next element. Leaves it 0 if the descriptor does
// not agree with what Fortran says of the array.
void find_gap(const FullArray& array, int rank, const std::int64_t* extent,
              halocline_f_buffer& out) {
  if (array.rank != rank) return;
  for (int i = 0; i < rank; ++i)
    if (array.dimension[i].extent != extent[i]) return;
  auto dense = static_cast<std::ptrdiff_t>(array.element_bytes);
  for (int i = 0; i < rank && out.dimension == 0; ++i) {
    if (array.dimension[i].stride != dense) {
      out.dimension = i + 1;
      out.stride = array.dimension[i].stride;
    }
    dense *= array.dimension[i].extent;
  }
}

// Names an argument, or one of several by its number, which begins with 1.
struct Argument {
  const char* name;
  int number = 0;

  // Throws ConfigError, which names the argument, unless `holds`.
  void require(bool holds, const std::string& text) const {
    if (holds) return;
    const auto numbered = number != 0 ? " " + std::to_string(number) : std::string();
    throw ConfigError(name + numbered + ": " + text);
  }
};

std::string gaps_of(const halocline_f_buffer& buffer) {
  auto text = "the array (rank " + std::to_string(buffer.rank) + " of Fortran";
  if (buffer.dimension != 0)
    text += ", dimension " + std::to_string(buffer.dimension) + " has a stride of " +
            std::to_string(buffer.stride) + " bytes";
  return text + ") has gaps: copy it, or give its first element and a datatype with the stride";
}

void check(const halocline_f_buffer& buffer, const Argument& of) {
  if (buffer.state == gaps) of.require(false, gaps_of(buffer));
  if (buffer.state == no_memory && buffer.count != 0)
    of.require(false, "the array has no memory: allocate it before you describe it");
  if (buffer.state == no_buffer)
    of.require(false, "the buffer is missing: give halocline_buffer(...)");
}

void check_alone(const halocline_f_buffer& buffer, const Argument& of) {
  check(buffer, of);
  if (buffer.state == in_place)
    of.require(false, "halocline_in_place is for the root of a gather or scatter");
}

// Makes a variable ready for a new object. Throws ConfigError if it holds one that was not freed.
template <class Handle>
void vacate(Handle& handle, const std::string& what) {
  if (c::is_live(handle))
    throw ConfigError("the variable holds " + what +
                      " that was not freed: free it first, or give another variable");
  handle = nullptr;
}

// Converts a communicator, which must be usable before ranks can agree on errors.
MPI_Comm comm_of(int comm) {
  c::require_mpi();
  const auto out = MPI_Comm_f2c(static_cast<MPI_Fint>(comm));
  c::require_communicator(out);
  return out;
}

MPI_Datatype type_of(const halocline_f_buffer& buffer) {
  return MPI_Type_f2c(static_cast<MPI_Fint>(buffer.datatype));
}

halocline_plan_options options_of(std::int64_t chunk_bytes, const char* model) {
  halocline_plan_options out = HALOCLINE_PLAN_OPTIONS;
  if (chunk_bytes != -1) out.chunk_bytes = chunk_bytes;  // halocline.F90 gives -1 if it is absent
  out.model = model;
  return out;
}

halocline_message message_of(const halocline_f_message& message, const Argument& of) {
  const auto& buffer = message.buffer;
  check_alone(buffer, of);
  return {buffer.address,  buffer.count, type_of(buffer),
          message.partner, message.tag,  message.round};
}

std::vector<halocline_message> messages_of(int number, const halocline_f_message* messages,
                                           const char* name) {
  std::vector<halocline_message> out;
  for (int i = 0; i < number; ++i) out.push_back(message_of(messages[i], {name, i + 1}));
  return out;
}

// Frees the types that it holds.
class Types {
 public:
  Types() = default;
  Types(const Types&) = delete;
  Types& operator=(const Types&) = delete;
  ~Types() {
    for (auto& type : types_) MPI_Type_free(&type);
  }
  MPI_Datatype contiguous(std::int64_t count, MPI_Datatype of) {
    MPI_Datatype type;
    HALOCLINE_MPI(
        MPI_Type_contiguous(checked_int(count, "number of elements of a point"), of, &type));
    types_.push_back(type);
    return type;
  }

 private:
  std::vector<MPI_Datatype> types_;
};

// Describes a field whose last axes are those of the communicator. The axes before them are numbers
// of a point.
halocline_field field_of(const halocline_f_field& field, const Argument& of, int dimensions,
                         Types& types) {
  check_alone(field.buffer, of);
  of.require(
      field.lows == dimensions && field.highs == dimensions && field.buffer.rank >= dimensions,
      "the array has rank " + std::to_string(field.buffer.rank) + " and widths of ghosts for " +
          std::to_string(field.lows) + " and " + std::to_string(field.highs) +
          " axes: give `low` and `high` a number for each of the " + std::to_string(dimensions) +
          " dimensions of the communicator");
  require(
      dimensions <= HALOCLINE_MAX_AXES,
      "the communicator has more dimensions than a field may have: use halocline_plan_create()");
  auto element = type_of(field.buffer);
  of.require(element != MPI_DATATYPE_NULL,
             "the datatype is MPI_DATATYPE_NULL: give one that is made");
  MPI_Aint lower = 0, bytes = 0;
  HALOCLINE_MPI(MPI_Type_get_extent(element, &lower, &bytes));
  of.require(bytes == field.element_bytes,
             "the elements have " + std::to_string(field.element_bytes) +
                 " bytes, but their datatype has " + std::to_string(bytes) +
                 ": give the datatype of the array's elements");
  const int leading = field.buffer.rank - dimensions;
  std::int64_t parts = 1;
  for (int i = 0; i < leading; ++i) parts *= field.extent[i];
  halocline_field out = HALOCLINE_FIELD;
  out.buffer = field.buffer.address;
  out.element = leading == 0 ? element : types.contiguous(parts, element);
  out.order = MPI_ORDER_FORTRAN;
  for (int i = 0; i < dimensions; ++i) {
    out.low[i] = field.low[i];
    out.high[i] = field.high[i];
    out.owned[i] = field.extent[leading + i] - field.low[i] - field.high[i];
  }
  if (field.has_swapped != 0) {
    of.require(field.swapped_element_bytes == field.element_bytes,
               "the elements have " + std::to_string(field.element_bytes) +
                   " bytes, but those of `swapped` " + std::to_string(field.swapped_element_bytes) +
                   ": give an array of the same type");
    check_alone(field.swapped, {"`swapped` of field", of.number});
    bool is_alike = field.swapped.rank == field.buffer.rank;
    for (int i = 0; is_alike && i < field.buffer.rank; ++i)
      is_alike = field.swapped_extent[i] == field.extent[i];
    of.require(is_alike,
               "`swapped` has another shape than its field: give an array of the same shape");
    of.require(field.swapped.address != field.buffer.address,
               "`swapped` is the same array as its field: give a second one, or none");
    out.swapped = field.swapped.address;
  }
  return out;
}

// Makes a call for one message. `request` is that of a call which starts a message.
int single(const halocline_f_message& message, const halocline_request* request, auto&& call) {
  halocline_message converted{};
  const int code = guarded([&] {
    c::require_mpi();
    require(request == nullptr || !c::is_live(*request),
            "the request belongs to a message that is not complete: call wait() for it first, or "
            "give another variable");
    converted = message_of(message, {"the message"});
  });
  return code != HALOCLINE_SUCCESS ? code : call(converted);
}

void check_packed(const halocline_f_buffer& buffer, const halocline_f_buffer& packed) {
  c::require_mpi();
  check_alone(buffer, {"`buffer`"});
  check_alone(packed, {"`packed`"});
}

}  // namespace
}  // namespace halocline::fortran

using namespace halocline;
using namespace halocline::fortran;

std::int64_t halocline_f_look(const halocline_f_array* array, int rank, const std::int64_t* extent,
                              int is_contiguous, halocline_f_buffer* out) {
  out->address = array->address;
  out->rank = rank;
  out->stride = 0;
  out->dimension = 0;
  out->state = usable;
  if (array->address == nullptr) {
    out->state = no_memory;
  } else if (is_contiguous == 0) {
    out->state = gaps;
    find_gap(*reinterpret_cast<const FullArray*>(array), rank, extent, *out);
  }
  return static_cast<std::int64_t>(array->element_bytes);
}

int halocline_f_alloc(int comm, int rank, std::int64_t element_bytes, int is_associated, int lowers,
                      const int* lower, int uppers, const int* upper, void** memory) {
  MPI_Comm on = MPI_COMM_NULL;
  std::int64_t bytes = element_bytes;
  const int code = guarded([&] {
    on = comm_of(comm);
    comm::collectively(on, [&] {
      require(is_associated == 0,
              "the pointer is associated already: call halocline_deallocate() first, or nullify it "
              "if other memory is meant; declare pointers with => null()");
      require(rank >= 1 && rank <= 7, "arrays have 1 to 7 dimensions: give such a pointer");
      if (lowers != rank || uppers != rank)
        throw ConfigError("an array of rank " + std::to_string(rank) + " has " +
                          std::to_string(lowers) + " lower and " + std::to_string(uppers) +
                          " upper bounds: give one of each for each dimension");
      for (int i = 0; i < rank; ++i) {
        const auto extent = std::max<std::int64_t>(std::int64_t{upper[i]} - lower[i] + 1, 0);
        require(!__builtin_mul_overflow(bytes, extent, &bytes),
                "an array would have 2^63 bytes or more: give smaller bounds");
      }
    });
  });
  return code != HALOCLINE_SUCCESS ? code : halocline_alloc(on, bytes, memory);
}

int halocline_f_plan_create(int comm, const char* method, int sends,
                            const halocline_f_message* send, int receives,
                            const halocline_f_message* receive, std::int64_t chunk_bytes,
                            const char* model, halocline_plan* plan) {
  MPI_Comm on = MPI_COMM_NULL;
  std::vector<halocline_message> sent, received;
  const int code = guarded([&] {
    on = comm_of(comm);
    comm::collectively(on, [&] {
      vacate(*plan, "a plan");
      sent = messages_of(sends, send, "send message");
      received = messages_of(receives, receive, "receive message");
    });
  });
  if (code != HALOCLINE_SUCCESS) return code;
  const auto with = options_of(chunk_bytes, model);
  return halocline_plan_create(on, method, sends, sent.data(), receives, received.data(), &with,
                               plan);
}

int halocline_f_halo_create(int cart, const char* method, int fields,
                            const halocline_f_field* field, int most_axes, std::int64_t chunk_bytes,
                            const char* model, halocline_plan* plan) {
  MPI_Comm on = MPI_COMM_NULL;
  std::vector<halocline_field> converted;
  Types types;
  const int code = guarded([&] {
    on = comm_of(cart);
    int topology = MPI_UNDEFINED, dimensions = 0;
    HALOCLINE_MPI(MPI_Topo_test(on, &topology));
    if (topology == MPI_CART) HALOCLINE_MPI(MPI_Cartdim_get(on, &dimensions));
    comm::collectively(on, [&] {
      vacate(*plan, "a plan");
      require(topology == MPI_CART,
              "the communicator has no Cartesian topology: make it with MPI_Cart_create");
      for (int i = 0; i < fields; ++i)
        converted.push_back(field_of(field[i], {"field", i + 1}, dimensions, types));
    });
  });
  if (code != HALOCLINE_SUCCESS) return code;
  const auto with = options_of(chunk_bytes, model);
  return halocline_halo_create(on, method, fields, converted.data(), most_axes, &with, plan);
}

int halocline_f_messages_create(int comm, halocline_messages* messages) {
  MPI_Comm on = MPI_COMM_NULL;
  const int code = guarded([&] {
    on = comm_of(comm);
    comm::collectively(on, [&] { vacate(*messages, "an engine of messages"); });
  });
  return code != HALOCLINE_SUCCESS ? code : halocline_messages_create(on, messages);
}

int halocline_f_send(halocline_messages messages, const halocline_f_message* message) {
  return single(*message, nullptr, [&](const halocline_message& m) {
    return halocline_send(messages, m.buffer, m.count, m.datatype, m.partner, m.tag);
  });
}

int halocline_f_recv(halocline_messages messages, const halocline_f_message* message,
                     halocline_status* status) {
  return single(*message, nullptr, [&](const halocline_message& m) {
    return halocline_recv(messages, m.buffer, m.count, m.datatype, m.partner, m.tag, status);
  });
}

int halocline_f_isend(halocline_messages messages, const halocline_f_message* message,
                      halocline_request* request) {
  return single(*message, request, [&](const halocline_message& m) {
    return halocline_isend(messages, m.buffer, m.count, m.datatype, m.partner, m.tag, request);
  });
}

int halocline_f_irecv(halocline_messages messages, const halocline_f_message* message,
                      halocline_request* request) {
  return single(*message, request, [&](const halocline_message& m) {
    return halocline_irecv(messages, m.buffer, m.count, m.datatype, m.partner, m.tag, request);
  });
}

int halocline_f_collective_create(int kind, int comm, const halocline_f_buffer* buffer,
                                  const halocline_f_buffer* all, int numbers,
                                  const std::int64_t* counts, int root,
                                  halocline_collective* collective) {
  MPI_Comm on = MPI_COMM_NULL;
  std::vector<std::int64_t> blocks;
  void *own = nullptr, *whole = nullptr;
  auto whole_type = MPI_DATATYPE_NULL;
  const int code = guarded([&] {
    on = comm_of(comm);
    int rank = 0, ranks = 0;
    HALOCLINE_MPI(MPI_Comm_rank(on, &rank));
    HALOCLINE_MPI(MPI_Comm_size(on, &ranks));
    const bool has_all = kind == 2 || rank == root;
    comm::collectively(on, [&] {
      vacate(*collective, "a gather or scatter");
      if (!has_all) check_alone(*buffer, {"`buffer`"});
      own = buffer->state == in_place ? MPI_IN_PLACE : buffer->address;
      if (!has_all) return;
      check(*buffer, {"`buffer`"});
      check_alone(*all, {"`all`"});
      whole = all->address;
      whole_type = type_of(*all);
      if (numbers >= 0 && numbers != ranks)
        throw ConfigError("`counts` has " + std::to_string(numbers) + " numbers for " +
                          std::to_string(ranks) + " ranks: give one for each rank");
      if (numbers >= 0)
        blocks.assign(counts, counts + numbers);
      else
        blocks.assign(static_cast<std::size_t>(ranks), all->count);
    });
  });
  if (code != HALOCLINE_SUCCESS) return code;
  const auto type = buffer->state == in_place ? MPI_BYTE : type_of(*buffer);
  const auto* const of = blocks.empty() ? nullptr : blocks.data();
  if (kind == 2)
    return halocline_allgather_create(on, own, buffer->count, type, whole, of, whole_type,
                                      collective);
  if (kind == 1)
    return halocline_scatter_create(on, own, buffer->count, type, whole, of, whole_type, root,
                                    collective);
  return halocline_gather_create(on, own, buffer->count, type, whole, of, whole_type, root,
                                 collective);
}

int halocline_f_packed_bytes(const halocline_f_buffer* buffer, std::int64_t* bytes) {
  return halocline_packed_bytes(buffer->count, type_of(*buffer), bytes);
}

int halocline_f_pack(const halocline_f_buffer* buffer, const halocline_f_buffer* packed,
                     std::int64_t* position) {
  const int code = guarded([&] { check_packed(*buffer, *packed); });
  if (code != HALOCLINE_SUCCESS) return code;
  return halocline_pack(buffer->address, buffer->count, type_of(*buffer), packed->address,
                        packed->count, position);
}

int halocline_f_unpack(const halocline_f_buffer* packed, std::int64_t* position,
                       const halocline_f_buffer* buffer) {
  const int code = guarded([&] { check_packed(*buffer, *packed); });
  if (code != HALOCLINE_SUCCESS) return code;
  return halocline_unpack(packed->address, packed->count, position, buffer->address, buffer->count,
                          type_of(*buffer));
}

const char* halocline_f_last_error(void) {
  static constexpr const char* kNames[][2] = {
      {"halocline_alloc() (comm::SharedWindow in C++)", "halocline_allocate()"},
      {"halocline_alloc()", "halocline_allocate()"},
      {"halocline_wait()", "wait()"},
      {"halocline_isend() or halocline_irecv()", "isend() or irecv()"},
      {" is NULL: make it with ", " was not made or was freed: make it with "},
  };
  static thread_local std::string text;
  text = halocline_last_error();
  for (const auto& [in_c, in_fortran] : kNames)
    if (const auto at = text.find(in_c); at != std::string::npos)
      text.replace(at, std::strlen(in_c), in_fortran);
  return text.c_str();
}

void halocline_f_stop(int code) {
  std::fprintf(stderr, "halocline: %s\n", halocline_f_last_error());
  int is_initialized = 0, is_finalized = 0;
  MPI_Initialized(&is_initialized);
  MPI_Finalized(&is_finalized);
  if (is_initialized != 0 && is_finalized == 0) MPI_Abort(MPI_COMM_WORLD, code);
  std::exit(code);
}
