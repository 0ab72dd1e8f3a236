// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/device/cuda_device.hpp"
#include "dtype/pack/cuda/cuda_check.cuh"
#include "dtype/pack/cuda/cuda_packer.hpp"
#include "dtype/support/contract.hpp"

namespace halocline::dtype {

namespace {

cudaStream_t stream_of(Device::Stream stream) {
  return static_cast<cudaStream_t>(stream);
}

__global__ void do_nothing() {}

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(int index) : index_(index) {
    cudaDeviceProp properties{};
    HALOCLINE_CUDA(cudaGetDeviceProperties(&properties, index));
    int version = 0;
    HALOCLINE_CUDA(cudaDriverGetVersion(&version));
    properties_.name = properties.name;
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
  if (code == cudaSuccess && devices > 0) return std::make_unique<CudaDevice>(index);
  why_not = code == cudaSuccess ? "CUDA sees no device" : cudaGetErrorString(code);
  return nullptr;
}

}  // namespace detail

}  // namespace halocline::dtype
