// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/device/emulated_device.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "dtype/pack/device/emulated_packer.hpp"
#include "support/contract.hpp"

namespace halocline::dtype {

namespace {

constexpr std::size_t kAlignment = 256, kPage = 4096;

std::size_t round_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

// Maps whole pages of a file between two pages that nobody can touch. Returns nullptr if that
// fails.
std::byte* map_pages(int file, std::int64_t offset, std::size_t bytes) {
  auto* const all = mmap(nullptr, bytes + 2 * kPage, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED) return nullptr;
  auto* const pages = static_cast<std::byte*>(all) + kPage;
  if (mmap(pages, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, offset) == pages)
    return pages;
  munmap(all, bytes + 2 * kPage);
  return nullptr;
}
void unmap_pages(std::byte* pages, std::size_t bytes) {
  munmap(pages - kPage, bytes + 2 * kPage);
}

// Tells another process where it finds the pages.
struct Name {
  pid_t process;
  int file;
  std::int64_t offset;
  std::size_t bytes;
};

NoDeviceMemory no_memory(std::size_t bytes, MemoryKind kind) {
  return NoDeviceMemory("no memory on the emulated device (" + std::to_string(bytes) +
                        " bytes of kind " + name(kind) + "): use less");
}

}  // namespace

EmulatedDevice::EmulatedDevice(std::size_t max_bytes, MemoryKind elsewhere)
    : max_bytes_(max_bytes),
      elsewhere_(elsewhere),
      file_(memfd_create("halocline emulated device", MFD_CLOEXEC)) {}

EmulatedDevice::~EmulatedDevice() {
  for (const auto& [memory, block] : blocks_) free(memory, block);
  if (file_ >= 0) ::close(file_);
}

// The memory ends with its last page, so that an overrun hits the page behind it.
std::byte* EmulatedDevice::map(Block& block) {
  const auto pages = round_up(block.bytes, kPage);
  block.file_offset = file_bytes_;
  if (ftruncate(file_, file_bytes_ + static_cast<off_t>(pages)) != 0) return nullptr;
  auto* const memory = map_pages(file_, block.file_offset, pages);
  if (memory == nullptr) return nullptr;
  file_bytes_ += static_cast<std::int64_t>(pages);
  return memory + (pages - block.bytes);
}

void EmulatedDevice::free(const std::byte* memory, const Block& block) {
  auto* const begin = const_cast<std::byte*>(memory);
  if (block.kind != MemoryKind::device) return std::free(begin);
  const auto pages = round_up(block.bytes, kPage);
  unmap_pages(begin - (pages - block.bytes), pages);
  fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, block.file_offset,
            static_cast<off_t>(pages));
}

void EmulatedDevice::limit(std::size_t max_bytes) {
  const std::lock_guard lock(mutex_);
  max_bytes_ = max_bytes;
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
  Block block{kind, round_up(std::max<std::size_t>(bytes, 1), kAlignment), 0};
  const std::lock_guard lock(mutex_);
  std::byte* memory = nullptr;
  if (bytes_ + block.bytes <= max_bytes_)
    memory = kind == MemoryKind::device
                 ? map(block)
                 : static_cast<std::byte*>(std::aligned_alloc(kAlignment, block.bytes));
  if (memory == nullptr) throw no_memory(bytes, kind);
  blocks_.emplace(memory, block);
  bytes_ += block.bytes;
  return memory;
}

void EmulatedDevice::release(MemoryKind, void* memory) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(static_cast<const std::byte*>(memory));
  if (found == blocks_.end()) return;
  bytes_ -= found->second.bytes;
  free(found->first, found->second);
  blocks_.erase(found);
}

std::optional<SharedMemory> EmulatedDevice::share(const void* address) const {
  const std::lock_guard lock(mutex_);
  const auto* byte = static_cast<const std::byte*>(address);
  auto after = blocks_.upper_bound(byte);
  if (after == blocks_.begin()) return std::nullopt;
  const auto& [begin, block] = *--after;
  const auto end = begin + block.bytes;
  if (byte >= end || block.kind != MemoryKind::device) return std::nullopt;
  const auto pages = round_up(block.bytes, kPage);
  const Name name{getpid(), file_, block.file_offset, pages};
  SharedMemory out;
  static_assert(sizeof(name) <= sizeof(out.allocation));
  std::memcpy(out.allocation.data(), &name, sizeof(name));
  out.bytes = end - byte;
  out.offset = static_cast<std::int64_t>(pages) - out.bytes;
  return out;
}

void* EmulatedDevice::open(const SharedMemory& shared) {
  Name name{};
  std::memcpy(&name, shared.allocation.data(), sizeof(name));
  const auto path = "/proc/" + std::to_string(name.process) + "/fd/" + std::to_string(name.file);
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return nullptr;
  auto* const pages = map_pages(file, name.offset, name.bytes);
  ::close(file);
  const std::lock_guard lock(mutex_);
  if (pages != nullptr) opened_.emplace(pages, name.bytes);
  return pages;
}

void EmulatedDevice::close(void* opened) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = opened_.find(opened);
  if (found == opened_.end()) return;
  unmap_pages(static_cast<std::byte*>(opened), found->second);
  opened_.erase(found);
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
  run(stream);
  const std::lock_guard lock(mutex_);
  submitted_.erase(stream);
  streams_.erase(stream);
}

void EmulatedDevice::check(Stream stream) const {
  const std::lock_guard lock(mutex_);
  if (stream != nullptr && !streams_.contains(stream))
    throw EnvironmentError("no such stream of the emulated device: use one of create_stream()");
}

// Adds an operation to the recording under way, else to the stream. The stream does it when
// somebody waits.
void EmulatedDevice::submit(Stream stream, Operation operation) {
  check(stream);
  const std::lock_guard lock(mutex_);
  const auto found = recording_.find(stream);
  auto& list = found != recording_.end() ? found->second.operations : submitted_[stream];
  list.push_back(std::move(operation));
}

void EmulatedDevice::run(Stream stream) {
  while (true) {
    Operations operations;
    {
      const std::lock_guard lock(mutex_);
      operations = std::exchange(submitted_[stream], {});
    }
    if (operations.empty()) return;
    for (const auto& operation : operations) operation();
  }
}

bool EmulatedDevice::is_recording(Stream stream) const {
  const std::lock_guard lock(mutex_);
  return recording_.contains(stream);
}

void EmulatedDevice::check_not_recording(const char* what) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [stream, begun] : recording_)
    if (begun.by == std::this_thread::get_id())
      throw EnvironmentError(std::string("a recording ") + what +
                             " (on the emulated device): do that before");
}

void EmulatedDevice::copy(void* to, const void* from, std::size_t bytes, Stream stream) {
  if (bytes == 0) return check(stream);
  submit(stream, [=] { std::memcpy(to, from, bytes); });
  // A copy of pageable memory is done on return, unless it is recorded.
  const bool pageable = kind_of(to) == MemoryKind::host || kind_of(from) == MemoryKind::host;
  if (pageable && !is_recording(stream)) run(stream);
}

void EmulatedDevice::launch_nothing(Stream stream) {
  check(stream);
}

void EmulatedDevice::synchronize(Stream stream) {
  check(stream);
  check_not_recording("waits");
  run(stream);
}

std::unique_ptr<Packer> EmulatedDevice::make_packer(Stream stream) {
  check(stream);
  return std::make_unique<EmulatedPacker>(EmulatedPacker::OfStream{
      .expect_room =
          [this](std::size_t bytes) {
            if (bytes > free_bytes()) throw no_memory(bytes, MemoryKind::device);
          },
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
