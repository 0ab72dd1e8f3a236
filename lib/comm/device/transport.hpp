// SPDX-License-Identifier: BSD-3-Clause
// Where packed bytes stand on their way between the fields and MPI, and what packs them there:
// [PEA21] section 4, "device", "one-shot" and "staged", and packing by the host.
//
// Best peer: [PEA21] has the three ways in its sends alone, staged not selectable; here they are
// one object under every exchange and every send.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "dtype/device/resource_cache.hpp"
#include "dtype/pack/packer.hpp"
#include "dtype/select/transfer_selector.hpp"

namespace halocline::comm {

/// One way for packed bytes, with a stream of its own unless it is `host`.
class Transport {
 public:
  /// `host_packer` packs for Transfer::host, kernels of the device of `resources` for all others.
  /// Both must outlive this.
  Transport(dtype::Transfer transfer, const dtype::Packer& host_packer,
            dtype::ResourceCache* resources);

  dtype::Transfer transfer() const { return transfer_; }
  const dtype::Packer& packer() const { return *packer_; }

  /// Returns when the device is done with what it was given, before memory goes back to where
  /// others get it from. An error of the device is not told here: whoever uses it next is.
  void settle() const noexcept;

  /// Memory for packed bytes.
  class Memory {
   public:
    std::byte* data() const { return host_ != nullptr ? host_.get() : buffer_.data(); }

   private:
    friend class Transport;
    std::unique_ptr<std::byte[]> host_;
    dtype::ResourceCache::Buffer buffer_;
  };

  /// A message: the packer's side and MPI's side of it, which are the same but for `staged`.
  struct Message {
    Memory packed_memory, wire_memory;
    std::size_t bytes = 0;
    bool staged = false;
    std::byte* packed() const { return packed_memory.data(); }
    std::byte* wire() const { return staged ? wire_memory.data() : packed(); }
  };
  Message message(std::size_t bytes) const;

  /// Memory for what the rank packs and unpacks itself: the packer's own, not seen by MPI.
  Memory own_memory(std::size_t bytes) const;

  /// Brings the first bytes of what was packed to MPI's side and waits for that.
  void to_wire(const Message& message, std::size_t bytes) const;
  /// Brings the first bytes of what has arrived to the packer's side; the packer's next work comes
  /// after it.
  void from_wire(const Message& message, std::size_t bytes) const;

  /// Copies a few bytes to MPI's side of a message or from there, and waits for it.
  void copy_wire(void* to, const void* from, std::size_t bytes) const;
  /// Copies between memory of the device and of the packer's side; not for Transfer::host.
  void copy(void* to, const void* from, std::size_t bytes) const;

  /// Work for the transport's stream that is the same each time. MPI's calls cannot be part of it.
  class Repeated {
   public:
    Repeated() = default;
    /// Gives it to the stream; the packer's fence() waits for it. From the second time on, work of
    /// more than one operation is one launch of what the device recorded the first time, which
    /// takes longer. One operation alone is one launch as it is.
    void start();

   private:
    friend class Transport;
    std::function<void()> work_;
    dtype::Device* device_ = nullptr;  // that records it, if any
    dtype::Device::Stream stream_ = nullptr;
    std::unique_ptr<dtype::Device::Recording> recording_;
  };
  /// Packs a plan and brings the message to MPI's side; brings what has arrived there to the
  /// packer's side and unpacks it. Transport, plan and message must stay where they are while the
  /// returned object lives, and its work must be done before it is destroyed.
  Repeated packing(const dtype::FusedPlan& plan, const Message& message) const;
  Repeated unpacking(const dtype::FusedPlan& plan, const Message& message) const;

 private:
  Memory memory(dtype::MemoryKind kind, std::size_t bytes) const;
  Repeated repeated(const Message& message, std::function<void()> work) const;
  void stage(const Message& message, std::byte* to, const std::byte* from, std::size_t bytes) const;

  dtype::Transfer transfer_;
  dtype::ResourceCache* resources_;
  dtype::ResourceCache::Stream stream_;
  std::unique_ptr<dtype::Packer> device_packer_;
  const dtype::Packer* packer_;
};

}  // namespace halocline::comm
