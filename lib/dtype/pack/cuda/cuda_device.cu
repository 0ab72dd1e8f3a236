// SPDX-License-Identifier: BSD-3-Clause
#include <cuda.h>

#include <cstring>
#include <type_traits>
#include <utility>

#include "dtype/device/cuda_device.hpp"
#include "dtype/pack/cuda/cuda_check.cuh"
#include "dtype/pack/cuda/cuda_packer.hpp"
#include "support/contract.hpp"

namespace halocline::dtype {

namespace {

cudaStream_t stream_of(Device::Stream stream) {
  return static_cast<cudaStream_t>(stream);
}

using RangeQuery = CUresult(CUdeviceptr*, std::size_t*, CUdeviceptr);

/// Returns the driver's cuMemGetAddressRange, or nullptr if it has none. Nothing here is linked
/// with the driver.
RangeQuery* range_query() {
  static auto* const query = [] {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result{};
    const auto code = cudaGetDriverEntryPointByVersion("cuMemGetAddressRange", &found, 12000,
                                                       cudaEnableDefault, &result);
    if (code != cudaSuccess) cudaGetLastError();
    return reinterpret_cast<RangeQuery*>(
        code == cudaSuccess && result == cudaDriverEntryPointSuccess ? found : nullptr);
  }();
  return query;
}

struct Destroy {
  void operator()(cudaGraph_t graph) const { cudaGraphDestroy(graph); }
  void operator()(cudaGraphExec_t graph) const { cudaGraphExecDestroy(graph); }
};
using Graph = std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, Destroy>;
using ExecutableGraph = std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, Destroy>;

/// Captures the work that this thread gives to a stream.
///
/// Meanwhile the thread must not call what could wait for the stream: that would invalidate the
/// capture. Other threads may, such as those of an MPI. cudaStreamCaptureModeGlobal would forbid it
/// to them, too.
class Capture {
 public:
  explicit Capture(cudaStream_t stream) : stream_(stream) {
    HALOCLINE_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  }
  ~Capture() {
    if (stream_ == nullptr) return;
    static_cast<void>(end());
    cudaGetLastError();  // the first error is thrown already
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  Graph finish() {
    auto [code, graph] = end();
    HALOCLINE_CUDA(code);
    return std::move(graph);
  }

 private:
  std::pair<cudaError_t, Graph> end() {
    cudaGraph_t graph = nullptr;
    const auto code = cudaStreamEndCapture(std::exchange(stream_, nullptr), &graph);
    return {code, Graph(graph)};
  }

  cudaStream_t stream_;
};

/// Replays a captured graph. The graph holds copies of the arguments of its kernels, up to 32 KiB
/// of a table that travels with the launch. It holds only the addresses of copied memory and of
/// tables on the device.
class CudaRecording final : public Device::Recording {
 public:
  CudaRecording(cudaStream_t stream, int device, const Graph& graph)
      : stream_(stream), device_(device) {
    cudaGraphExec_t executable = nullptr;
    HALOCLINE_CUDA(cudaGraphInstantiate(&executable, graph.get(), 0));
    executable_.reset(executable);
    HALOCLINE_CUDA(cudaGraphUpload(executable, stream));  // otherwise the first replay uploads it
  }

  void replay() override {
    const halocline::detail::OnDevice scope(device_);
    HALOCLINE_CUDA(cudaGraphLaunch(executable_.get(), stream_));
  }

 private:
  cudaStream_t stream_;
  int device_;
  ExecutableGraph executable_;
};
__global__ void do_nothing() {}

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(int index) : index_(index) {
    cudaDeviceProp properties{};
    HALOCLINE_CUDA(cudaGetDeviceProperties(&properties, index));
    int version = 0;
    HALOCLINE_CUDA(cudaDriverGetVersion(&version));
    properties_.name = properties.name;
    properties_.id.assign(properties.uuid.bytes, sizeof(properties.uuid.bytes));
    properties_.driver =
        "CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
  }

  const Properties& properties() const override { return properties_; }

  MemoryKind kind_of(const void* address) const override {
    cudaPointerAttributes attributes{};
    HALOCLINE_CUDA(cudaPointerGetAttributes(&attributes, address));
    switch (attributes.type) {
      case cudaMemoryTypeDevice:
        return MemoryKind::device;
      case cudaMemoryTypeManaged:
        return MemoryKind::managed;
      case cudaMemoryTypeHost:
        return attributes.devicePointer != nullptr ? MemoryKind::pinned : MemoryKind::host;
      default:
        return MemoryKind::host;
    }
  }

  void* allocate(MemoryKind kind, std::size_t bytes) override {
    HALOCLINE_EXPECT(kind != MemoryKind::host);
    const halocline::detail::OnDevice scope(index_);
    void* memory = nullptr;
    if (kind == MemoryKind::pinned)
      HALOCLINE_CUDA(cudaHostAlloc(&memory, bytes, cudaHostAllocMapped | cudaHostAllocPortable));
    else if (kind == MemoryKind::managed)
      HALOCLINE_CUDA(cudaMallocManaged(&memory, bytes));
    else
      HALOCLINE_CUDA(cudaMalloc(&memory, bytes));
    return memory;
  }

  void release(MemoryKind kind, void* memory) noexcept override {
    kind == MemoryKind::pinned ? cudaFreeHost(memory) : cudaFree(memory);
  }

  std::size_t free_bytes() const override {
    const halocline::detail::OnDevice scope(index_);
    std::size_t free = 0, total = 0;
    HALOCLINE_CUDA(cudaMemGetInfo(&free, &total));
    return free;
  }

  std::optional<SharedMemory> share(const void* address) const override {
    cudaPointerAttributes attributes{};
    HALOCLINE_CUDA(cudaPointerGetAttributes(&attributes, address));
    const auto range = range_query();
    if (attributes.type != cudaMemoryTypeDevice || range == nullptr) return std::nullopt;
    const halocline::detail::OnDevice scope(index_);
    const auto at = reinterpret_cast<CUdeviceptr>(address);
    CUdeviceptr begin = 0;
    std::size_t bytes = 0;
    cudaIpcMemHandle_t handle{};
    if (range(&begin, &bytes, at) != CUDA_SUCCESS) return std::nullopt;
    if (cudaIpcGetMemHandle(&handle, reinterpret_cast<void*>(begin)) != cudaSuccess) {
      cudaGetLastError();  // memory of a pool, or a system without IPC
      return std::nullopt;
    }
    SharedMemory out;
    static_assert(sizeof(handle) <= sizeof(out.allocation));
    std::memcpy(out.allocation.data(), &handle, sizeof(handle));
    out.offset = static_cast<std::int64_t>(at - begin);
    out.bytes = static_cast<std::int64_t>(bytes - (at - begin));
    return out;
  }

  void* open(const SharedMemory& shared) override {
    const halocline::detail::OnDevice scope(index_);
    cudaIpcMemHandle_t handle{};
    std::memcpy(&handle, shared.allocation.data(), sizeof(handle));
    void* begin = nullptr;
    if (cudaIpcOpenMemHandle(&begin, handle, cudaIpcMemLazyEnablePeerAccess) == cudaSuccess)
      return begin;
    cudaGetLastError();
    return nullptr;
  }
  void close(void* opened) noexcept override { cudaIpcCloseMemHandle(opened); }

  Stream create_stream() override {
    const halocline::detail::OnDevice scope(index_);
    cudaStream_t stream = nullptr;
    HALOCLINE_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
  }
  void destroy_stream(Stream stream) noexcept override { cudaStreamDestroy(stream_of(stream)); }

  void copy(void* to, const void* from, std::size_t bytes, Stream stream) override {
    const halocline::detail::OnDevice scope(index_);  // the null stream is the current device's
    HALOCLINE_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_of(stream)));
  }
  void launch_nothing(Stream stream) override {
    const halocline::detail::OnDevice scope(index_);
    do_nothing<<<1, 1, 0, stream_of(stream)>>>();
    HALOCLINE_CUDA(cudaGetLastError());
  }
  void synchronize(Stream stream) override {
    const halocline::detail::OnDevice scope(index_);
    HALOCLINE_CUDA(cudaStreamSynchronize(stream_of(stream)));
  }
  std::unique_ptr<Packer> make_packer(Stream stream) override {
    return std::make_unique<CudaPacker>(stream_of(stream), index_);
  }
  std::unique_ptr<Recording> record(Stream stream, const std::function<void()>& work) override {
    HALOCLINE_EXPECT(stream != nullptr);
    const halocline::detail::OnDevice scope(index_);
    Capture capture(stream_of(stream));
    work();
    return std::make_unique<CudaRecording>(stream_of(stream), index_, capture.finish());
  }

 private:
  int index_;
  Properties properties_;
};

}  // namespace

namespace detail {

std::unique_ptr<Device> make_cuda_device(std::string& why_not) {
  int devices = 0, index = 0;
  auto code = cudaGetDeviceCount(&devices);
  if (code == cudaSuccess && devices > 0) code = cudaGetDevice(&index);
  if (code == cudaSuccess && devices > 0) {
    // Tests if the device can run our kernels. A lack of memory now may pass.
    cudaFuncAttributes attributes{};
    code = cudaFuncGetAttributes(&attributes, do_nothing);
    if (code == cudaErrorMemoryAllocation) code = cudaSuccess;
    cudaGetLastError();
  }
  if (code == cudaSuccess && devices > 0) return std::make_unique<CudaDevice>(index);
  why_not = code == cudaSuccess ? "CUDA sees no device" : cudaGetErrorString(code);
  return nullptr;
}

}  // namespace detail

}  // namespace halocline::dtype
