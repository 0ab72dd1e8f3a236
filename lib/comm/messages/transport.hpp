// SPDX-License-Identifier: BSD-3-Clause
// Keeps packed bytes on their way between the fields and MPI, and packs them there. The ways are
// "device", "one-shot" and "staged" of [PEA21] section 4, and packing by the host.
//
// Best peer: [PEA21] has the three ways in its sends alone, and staged cannot be selected. Here one
// object serves every exchange and every send.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "comm/messages/message_memory.hpp"
#include "dtype/device/resource_cache.hpp"
#include "dtype/model/transfer_selector.hpp"
#include "dtype/pack/packer.hpp"

namespace halocline::comm {

/// Moves packed bytes by one transfer. Has a stream of its own unless the transfer is `host`.
class Transport {
 public:
  /// Makes a transport. `host_packer` packs for Transfer::host, kernels of the device of
  /// `resources` pack for all other transfers. Both must outlive this object. `resources` may be
  /// nullptr for Transfer::host.
  Transport(dtype::Transfer transfer, const dtype::Packer& host_packer,
            dtype::ResourceCache* resources);

  dtype::Transfer transfer() const { return transfer_; }
  const dtype::Packer& packer() const { return *packer_; }

  /// Waits until the device has done all work of this transport. After that, its memory may be
  /// reused. Ignores errors of the device: its next use reports them.
  void settle() const noexcept;

  /// Owns memory for packed bytes.
  class Memory {
   public:
    std::byte* data() const { return host_.data() != nullptr ? host_.data() : buffer_.data(); }

   private:
    friend class Transport;
    HostBytes host_;
    dtype::ResourceCache::Buffer buffer_;
  };

  /// Holds the two sides of a message: the packer's and MPI's. Only `staged` has two buffers, else
  /// both sides are one.
  struct Message {
    Memory packed_memory, wire_memory;
    std::size_t bytes = 0;
    bool staged = false;
    std::byte* packed() const { return packed_memory.data(); }
    std::byte* wire() const { return staged ? wire_memory.data() : packed(); }
  };
  /// Returns memory for a message. Host memory for Transfer::host comes from `spare` if given.
  Message message(std::size_t bytes, MessageMemory* spare = nullptr) const;

  /// Returns memory for bytes that the rank packs and unpacks itself. It is on the packer's side,
  /// and MPI does not see it.
  Memory own_memory(std::size_t bytes) const;

  /// Brings the first `bytes` packed bytes to MPI's side and waits for them.
  void to_wire(const Message& message, std::size_t bytes) const;
  /// Brings the first `bytes` bytes that have arrived to the packer's side. The packer's next work
  /// comes after that.
  void from_wire(const Message& message, std::size_t bytes) const;

  /// Copies a few bytes to or from MPI's side of a message, and waits for them.
  void copy_wire(void* to, const void* from, std::size_t bytes) const;
  /// Copies between memory of the device and of the packer's side, in order of the stream. Not for
  /// Transfer::host.
  void copy(void* to, const void* from, std::size_t bytes) const;

  /// Is work for the transport's stream that is the same each time. It cannot contain calls of MPI.
  class Repeated {
   public:
    Repeated() = default;
    /// Starts the work in the stream; the packer's fence() waits for it. The first call records
    /// work of more than one operation, which takes longer. Later calls launch the recording at
    /// once. Work of one operation is one launch without a recording.
    void start();

   private:
    friend class Transport;
    std::function<void()> work_;
    dtype::Device* device_ = nullptr;  // device that records the work, or nullptr
    dtype::Device::Stream stream_ = nullptr;
    std::unique_ptr<dtype::Device::Recording> recording_;
  };
  /// Returns work that packs a plan and brings the message to MPI's side. unpacking() returns work
  /// that brings a message that has arrived to the packer's side and unpacks it.
  ///
  /// Transport, plan and message must not move or end while the returned object lives. Its work
  /// must be done before it is destroyed.
  Repeated packing(const dtype::FusedPlan& plan, const Message& message) const;
  Repeated unpacking(const dtype::FusedPlan& plan, const Message& message) const;

 private:
  Memory memory(dtype::MemoryKind kind, std::size_t bytes, MessageMemory* spare = nullptr) const;
  Repeated repeated(const Message& message, std::function<void()> work) const;

  dtype::Transfer transfer_;
  dtype::ResourceCache* resources_;
  dtype::ResourceCache::Stream stream_;
  std::unique_ptr<dtype::Packer> device_packer_;
  const dtype::Packer* packer_;
};

}  // namespace halocline::comm
