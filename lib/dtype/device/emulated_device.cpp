// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/device/emulated_device.hpp"

#include <cstdlib>
#include <cstring>
#include <utility>

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
  check_not_recording("allocates");
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

std::size_t EmulatedDevice::free_bytes() const {
  const std::lock_guard lock(mutex_);
  return max_bytes_ - bytes_;
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

// Does it now, or when the recording under way is replayed.
void EmulatedDevice::submit(Stream stream, Operation operation) {
  check(stream);
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = recording_.find(stream); found != recording_.end()) {
      found->second.operations.push_back(std::move(operation));
      return;
    }
  }
  operation();
}

void EmulatedDevice::check_not_recording(const char* what) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [stream, begun] : recording_)
    if (begun.by == std::this_thread::get_id())
      throw EnvironmentError(std::string("a recording ") + what +
                             " (on the emulated device): do that before");
}

void EmulatedDevice::copy(void* to, const void* from, std::size_t bytes, Stream stream) {
  submit(stream, [=] {
    if (bytes > 0) std::memcpy(to, from, bytes);
  });
}

void EmulatedDevice::synchronize(Stream stream) {
  check(stream);
  check_not_recording("waits");
}

std::unique_ptr<Packer> EmulatedDevice::make_packer(Stream stream) {
  check(stream);
  return std::make_unique<EmulatedPacker>(EmulatedPacker::OfStream{
      .submit = [this, stream](Operation launch) { submit(stream, std::move(launch)); },
      .wait = [this, stream] { synchronize(stream); }});
}

class EmulatedDevice::EmulatedRecording final : public Recording {
 public:
  EmulatedRecording(EmulatedDevice& device, Stream stream, Operations operations)
      : device_(device), stream_(stream), operations_(std::move(operations)) {}

  void replay() override {
    for (const auto& operation : operations_) device_.submit(stream_, operation);
    const std::lock_guard lock(device_.mutex_);
    ++device_.replays_;
  }

 private:
  EmulatedDevice& device_;
  Stream stream_;
  Operations operations_;
};

std::unique_ptr<Device::Recording> EmulatedDevice::record(Stream stream,
                                                          const std::function<void()>& work) {
  HALOCLINE_EXPECT(stream != nullptr);
  check(stream);
  check_not_recording("records");
  {
    const std::lock_guard lock(mutex_);
    recording_.emplace(stream, Begun{std::this_thread::get_id(), {}});
  }
  const auto end = [&] {
    const std::lock_guard lock(mutex_);
    return std::move(recording_.extract(stream).mapped().operations);
  };
  try {
    work();
  } catch (...) {
    end();
    throw;
  }
  return std::make_unique<EmulatedRecording>(*this, stream, end());
}

std::size_t EmulatedDevice::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

std::size_t EmulatedDevice::streams() const {
  const std::lock_guard lock(mutex_);
  return streams_.size();
}

std::size_t EmulatedDevice::replays() const {
  const std::lock_guard lock(mutex_);
  return replays_;
}

}  // namespace halocline::dtype
