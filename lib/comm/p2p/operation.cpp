// SPDX-License-Identifier: BSD-3-Clause
#include "comm/p2p/operation.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "dtype/datatype.hpp"
#include "support/mpi_check.hpp"
#include "support/narrow.hpp"

namespace halocline::comm::detail {

namespace {

// Calls f(count, type) with a type that describes `bytes` packed bytes, also more than an int
// counts.
template <class F>
void with_type(std::int64_t bytes, std::int64_t limit, F f) {
  if (bytes <= limit) return f(static_cast<int>(bytes), MPI_PACKED);
  MPI_Datatype raw = MPI_DATATYPE_NULL;
  HALOCLINE_MPI(MPI_Type_contiguous(static_cast<int>(limit), MPI_PACKED, &raw));
  const dtype::Datatype block(raw);
  const int counts[] = {checked_int(bytes / limit, "message length in blocks", limit),
                        static_cast<int>(bytes % limit)};
  const MPI_Aint displacements[] = {0, static_cast<MPI_Aint>(bytes / limit * limit)};
  const MPI_Datatype types[] = {block.get(), MPI_PACKED};
  HALOCLINE_MPI(MPI_Type_create_struct(2, counts, displacements, types, &raw));
  const dtype::Datatype all(raw);
  HALOCLINE_MPI(MPI_Type_commit(&raw));
  f(1, all.get());
}

ReceiveStatus status_of(const MPI_Status& status) {
  MPI_Count bytes = 0;
  HALOCLINE_MPI(MPI_Get_elements_x(&status, MPI_PACKED, &bytes));
  return {status.MPI_SOURCE, status.MPI_TAG, bytes};
}

}  // namespace

void Operation::complete(std::size_t i, int error, const MPI_Status& status) {
  requests_[i] = MPI_REQUEST_NULL;
  try {
    if (error != MPI_SUCCESS)
      throw MpiError(error, "a message of PointToPoint", __FILE__, __LINE__);
    completed(i, status);
  } catch (...) {
    failure_ = std::current_exception();
  }
}

ReceiveStatus Operation::result() const {
  if (failure_ != nullptr) std::rethrow_exception(failure_);
  return status_;
}

void VendorOperation::start() {
  const auto count = checked_int(call_.count, "count of a type that MPI packs");
  auto& request = requests_.front();
  if (sends_)
    HALOCLINE_MPI(
        MPI_Isend(call_.buffer, count, type_, call_.partner, call_.tag, wire_.comm, &request));
  else
    HALOCLINE_MPI(
        MPI_Irecv(call_.buffer, count, type_, call_.partner, call_.tag, wire_.comm, &request));
}

void VendorOperation::completed(std::size_t, const MPI_Status& status) {
  if (!sends_) status_ = status_of(status);
  done_ = true;
}

PackedOperation::PackedOperation(Wire& wire, const MessageArguments& call,
                                 const Transport& transport, const dtype::PackPlan& plan,
                                 bool in_buffer)
    : wire_(wire),
      call_(call),
      transport_(transport),
      stream_(transport, {plan, call.buffer, call.count}),
      in_buffer_(in_buffer),
      end_(stream_.bytes()) {
  if (in_buffer) all_bytes_ = byte_at(call.buffer, plan.program().start);
  const auto slots = is_long() ? static_cast<std::size_t>(wire.slots) : 1;
  slots_.resize(slots);
  requests_.resize(slots, MPI_REQUEST_NULL);
}

void PackedOperation::isend(std::size_t slot, const std::byte* from, std::int64_t bytes,
                            MPI_Comm comm, int tag) {
  with_type(bytes, wire_.count_limit, [&](int count, MPI_Datatype type) {
    HALOCLINE_MPI(MPI_Isend(from, count, type, call_.partner, tag, comm, &requests_[slot]));
  });
}

void PackedOperation::irecv(std::size_t slot, std::byte* to, std::int64_t bytes, MPI_Comm comm,
                            int source, int tag) {
  with_type(bytes, wire_.count_limit, [&](int count, MPI_Datatype type) {
    HALOCLINE_MPI(MPI_Irecv(to, count, type, source, tag, comm, &requests_[slot]));
  });
}

const Transport::Message& PackedOperation::memory_of(std::size_t slot, std::int64_t bytes) {
  auto& memory = slots_[slot].memory;
  if (memory.bytes == 0)
    memory = transport_.message(static_cast<std::size_t>(kHeaderBytes + bytes), &wire_.memory);
  return memory;
}

void PackedOperation::take_chunk(std::size_t slot) {
  const auto last = std::min(next_ + wire_.chunk_bytes, end_);
  slots_[slot].first = next_, slots_[slot].last = last;
  next_ = last;
}

bool PackedOperation::is_over() const {
  return next_ == end_ && std::all_of(requests_.begin(), requests_.end(), [](MPI_Request request) {
           return request == MPI_REQUEST_NULL;
         });
}

void Send::start() {
  if (all_bytes_ == nullptr && !(is_long() && stream_.has_parts())) {
    make_room_for_all();
    stream_.pack(0, end_, slots_.front().memory, kHeaderBytes);
  }
  if (!is_long()) {
    next_ = end_;
    return isend(0, all_bytes_, end_, wire_.comm, call_.tag);
  }
  take_chunk(0);
  if (!has_own_room()) stream_.pack(0, next_, memory_of(0, wire_.chunk_bytes), kHeaderBytes);
  auto* const first = slots_.front().memory.wire();
  tag_of_chunks_ = static_cast<int>(wire_.next_tag++ % (std::int64_t{wire_.largest_tag} + 1));
  const LongHeader header{.bytes = end_, .tag = tag_of_chunks_};
  transport_.copy_wire(first, &header, sizeof(header));
  isend(0, first, kHeaderBytes + next_, wire_.comm, call_.tag);
  for (std::size_t slot = 1; slot < slots_.size() && next_ < end_; ++slot) send_chunk(slot);
}

void Send::send_chunk(std::size_t slot) {
  take_chunk(slot);
  const auto& [memory, first, last] = slots_[slot];
  const std::byte* from = all_bytes_ + first;
  if (all_bytes_ == nullptr) {
    stream_.pack(first, last, memory_of(slot, wire_.chunk_bytes), kHeaderBytes);
    from = memory.wire() + kHeaderBytes;
  }
  isend(slot, from, last - first, wire_.chunks, tag_of_chunks_);
}

void Send::completed(std::size_t slot, const MPI_Status&) {
  if (next_ < end_) send_chunk(slot);
  if (is_over()) end();
}

void Receive::start() {
  if (all_bytes_ == nullptr && !(is_long() && stream_.has_parts())) make_room_for_all();
  if (is_long())
    irecv(0, memory_of(0, wire_.chunk_bytes).wire(), kHeaderBytes + wire_.chunk_bytes, wire_.comm,
          call_.partner, call_.tag);
  else
    irecv(0, all_bytes_, end_, wire_.comm, call_.partner, call_.tag);
}

void Receive::completed(std::size_t slot, const MPI_Status& status) {
  if (next_ == 0)
    first_completed(status);
  else if (all_bytes_ == nullptr)
    unpack_chunk(slot);
  if (next_ < end_) receive_chunk(slot);
  if (!is_over()) return;
  if (has_own_room() && is_long()) stream_.unpack(0, end_, slots_.front().memory, kHeaderBytes);
  stream_.fence();
  end();
  if (too_long_ != nullptr) std::rethrow_exception(too_long_);
}

void Receive::first_completed(const MPI_Status& status) {
  status_ = status_of(status);
  if (!is_long() || status_.bytes <= wire_.chunk_bytes) {
    if (!in_buffer_ || is_long())
      stream_.unpack(0, status_.bytes, slots_.front().memory, is_long() ? 0 : kHeaderBytes);
    next_ = end_ = status_.bytes;
    return;
  }
  LongHeader header{.mark = 0};
  transport_.copy_wire(&header, slots_.front().memory.wire(), sizeof(header));
  if (header.mark != LongHeader::kMark || status_.bytes != kHeaderBytes + wire_.chunk_bytes)
    throw EnvironmentError("a message of " + std::to_string(status_.bytes) +
                           " bytes is longer than a chunk, but not sent in chunks (a sender that "
                           "is no PointToPoint): set chunk_bytes to 0 on all ranks");
  // The sender waits until all chunks are received, even if they are thrown away.
  if (header.bytes > end_) {
    too_long_ = std::make_exception_ptr(
        MpiError(MPI_ERR_TRUNCATE, "a long message of PointToPoint", __FILE__, __LINE__));
    if (has_own_room()) slots_.front().memory = {};
    all_bytes_ = nullptr;
  }
  status_.bytes = end_ = header.bytes;
  tag_of_chunks_ = static_cast<int>(header.tag);
  take_chunk(0);
  if (!has_own_room()) unpack_chunk(0);
  for (std::size_t slot = 1; slot < slots_.size() && next_ < end_; ++slot) receive_chunk(slot);
}

void Receive::receive_chunk(std::size_t slot) {
  take_chunk(slot);
  const auto& [memory, first, last] = slots_[slot];
  auto* const to = all_bytes_ != nullptr ? all_bytes_ + first
                                         : memory_of(slot, wire_.chunk_bytes).wire() + kHeaderBytes;
  irecv(slot, to, last - first, wire_.chunks, status_.source, tag_of_chunks_);
}

// Unpacks a slot's chunk, after which its memory may be used again.
void Receive::unpack_chunk(std::size_t slot) {
  if (too_long_ != nullptr) return;
  const auto& [memory, first, last] = slots_[slot];
  stream_.unpack(first, last, memory, kHeaderBytes);
  stream_.fence();
}

}  // namespace halocline::comm::detail
