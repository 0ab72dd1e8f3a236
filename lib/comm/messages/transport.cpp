// SPDX-License-Identifier: BSD-3-Clause
// Places packed bytes in memory for each transfer, and moves them between packer and MPI.
#include "comm/messages/transport.hpp"

#include <cstring>

#include "support/contract.hpp"

namespace halocline::comm {

using dtype::MemoryKind;
using dtype::Transfer;

Transport::Transport(Transfer transfer, const dtype::Packer& host_packer,
                     dtype::ResourceCache* resources)
    : transfer_(transfer), resources_(resources), packer_(&host_packer) {
  if (transfer == Transfer::host) return;
  HALOCLINE_EXPECT(resources != nullptr);
  stream_ = resources->stream();
  device_packer_ = resources->device().make_packer(stream_.get());
  packer_ = device_packer_.get();
}

Transport::Memory Transport::memory(MemoryKind kind, std::size_t bytes,
                                    MessageMemory* spare) const {
  Memory memory;
  if (kind == MemoryKind::host)
    memory.host_ = spare != nullptr ? HostBytes(*spare, bytes) : HostBytes(bytes);
  else
    memory.buffer_ = resources_->buffer(kind, bytes);
  return memory;
}

Transport::Message Transport::message(std::size_t bytes, MessageMemory* spare) const {
  Message message;
  message.bytes = bytes;
  message.staged = transfer_ == Transfer::staged;
  const auto packed = transfer_ == Transfer::host       ? MemoryKind::host
                      : transfer_ == Transfer::one_shot ? MemoryKind::pinned
                                                        : MemoryKind::device;
  message.packed_memory = memory(packed, bytes, spare);
  if (message.staged) message.wire_memory = memory(MemoryKind::pinned, bytes);
  return message;
}

Transport::Memory Transport::own_memory(std::size_t bytes) const {
  return memory(transfer_ == Transfer::host ? MemoryKind::host : MemoryKind::device, bytes);
}

void Transport::settle() const noexcept {
  try {
    packer_->fence();
  } catch (const std::exception&) {
    return;
  }
}

void Transport::copy(void* to, const void* from, std::size_t bytes) const {
  if (bytes > 0) resources_->device().copy(to, from, bytes, stream_.get());
}

void Transport::to_wire(const Message& message, std::size_t bytes) const {
  if (message.staged) copy(message.wire(), message.packed(), bytes);
  packer_->fence();
}

void Transport::from_wire(const Message& message, std::size_t bytes) const {
  if (message.staged) copy(message.packed(), message.wire(), bytes);
}

void Transport::copy_wire(void* to, const void* from, std::size_t bytes) const {
  if (transfer_ != Transfer::device) {
    std::memcpy(to, from, bytes);
    return;
  }
  copy(to, from, bytes);
  packer_->fence();
}

void Transport::Repeated::start() {
  if (recording_ != nullptr) return recording_->replay();
  work_();
  if (device_ != nullptr) recording_ = device_->record(stream_, work_);
}

Transport::Repeated Transport::repeated(const Message& message, std::function<void()> work) const {
  Repeated out;
  out.work_ = std::move(work);
  if (message.staged && message.bytes > 0) {
    out.device_ = &resources_->device();
    out.stream_ = stream_.get();
  }
  return out;
}

Transport::Repeated Transport::packing(const dtype::FusedPlan& plan, const Message& message) const {
  return repeated(message, [this, &plan, &message] {
    packer_->pack(plan, message.packed());
    if (message.staged) copy(message.wire(), message.packed(), message.bytes);
  });
}

Transport::Repeated Transport::unpacking(const dtype::FusedPlan& plan,
                                         const Message& message) const {
  return repeated(message, [this, &plan, &message] {
    if (message.staged) copy(message.packed(), message.wire(), message.bytes);
    packer_->unpack(plan, message.packed());
  });
}

}  // namespace halocline::comm
