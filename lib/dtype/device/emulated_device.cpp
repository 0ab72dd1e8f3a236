// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/device/emulated_device.hpp"

#include <cstdlib>
#include <cstring>

#include "dtype/pack/device/emulated_packer.hpp"
#include "dtype/support/contract.hpp"

namespace halocline::dtype {

namespace {

constexpr std::size_t kAlignment = 256;

}  // namespace

EmulatedDevice::~EmulatedDevice() {
  for (const auto& [memory, block] : blocks_) std::free(const_cast<std::byte*>(memory));
}

MemoryKind EmulatedDevice::kind_of(const void* address) const {
  const std::lock_guard lock(mutex_);
  const auto* byte = static_cast<const std::byte*>(address);
  auto after = blocks_.upper_bound(byte);
  if (after == blocks_.begin()) return elsewhere_;
  const auto& [begin, block] = *--after;
  return byte < begin + block.bytes ? block.kind : elsewhere_;
}

void* EmulatedDevice::allocate(MemoryKind kind, std::size_t bytes) {
  HALOCLINE_EXPECT(kind != MemoryKind::host);
  const auto room = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  const std::lock_guard lock(mutex_);
  void* memory = bytes_ + room <= max_bytes_ ? std::aligned_alloc(kAlignment, room) : nullptr;
  if (memory == nullptr)
    throw EnvironmentError("no memory on the emulated device (" + std::to_string(bytes) +
                           " bytes of kind " + name(kind) + "): use less");
  blocks_.emplace(static_cast<const std::byte*>(memory), Block{kind, room});
  bytes_ += room;
  return memory;
}

void EmulatedDevice::release(MemoryKind, void* memory) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(static_cast<const std::byte*>(memory));
  if (found == blocks_.end()) return;
  bytes_ -= found->second.bytes;
  blocks_.erase(found);
  std::free(memory);
}

Device::Stream EmulatedDevice::create_stream() {
  const std::lock_guard lock(mutex_);
  auto stream = std::make_unique<int>();
  const Stream handle = stream.get();
  streams_.emplace(handle, std::move(stream));
  return handle;
}

void EmulatedDevice::destroy_stream(Stream stream) noexcept {
  const std::lock_guard lock(mutex_);
  streams_.erase(stream);
}

void EmulatedDevice::check(Stream stream) const {
  const std::lock_guard lock(mutex_);
  if (stream != nullptr && !streams_.contains(stream))
    throw EnvironmentError("no such stream of the emulated device: use one of create_stream()");
}

void EmulatedDevice::copy(void* to, const void* from, std::size_t bytes, Stream stream) {
  check(stream);
  if (bytes > 0) std::memcpy(to, from, bytes);
}

void EmulatedDevice::launch_nothing(Stream stream) {
  check(stream);
}

void EmulatedDevice::synchronize(Stream stream) {
  check(stream);
}

std::unique_ptr<Packer> EmulatedDevice::make_packer(Stream stream) {
  check(stream);
  return std::make_unique<EmulatedPacker>();
}

std::size_t EmulatedDevice::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

std::size_t EmulatedDevice::streams() const {
  const std::lock_guard lock(mutex_);
  return streams_.size();
}

}  // namespace halocline::dtype
