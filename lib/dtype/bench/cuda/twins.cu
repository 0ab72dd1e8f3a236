// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <bit>
#include <limits>

#include "dtype/bench/device/twins.hpp"
#include "dtype/pack/cuda/cuda_check.cuh"
#include "dtype/pack/device/copy_words.hpp"
#include "dtype/pack/device/kernels.hpp"

namespace halocline::dtype::bench {

namespace {

using device::WordOf;

__global__ void do_nothing() {}

/// Describes three dimensions of words. For a 2-D object, the third dimension is that of the
/// objects.
struct Box {
  unsigned words, rows, planes, objects;
  std::int64_t row_stride, plane_stride, object_stride;
};

template <class Word, CopyDirection kDirection>
__global__ void tempi_kernel(std::byte* memory, std::byte* packed, const Box box) {
  const unsigned first_x = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned first_y = blockIdx.y * blockDim.y + threadIdx.y;
  const unsigned first_z = blockIdx.z * blockDim.z + threadIdx.z;
  const std::int64_t packed_row = std::int64_t{box.words} * sizeof(Word);
  for (unsigned object = 0; object < box.objects; ++object) {
    for (unsigned z = first_z; z < box.planes; z += gridDim.z * blockDim.z)
      for (unsigned y = first_y; y < box.rows; y += gridDim.y * blockDim.y) {
        auto* row = reinterpret_cast<Word*>(memory + z * box.plane_stride + y * box.row_stride);
        auto* packed_words =
            reinterpret_cast<Word*>(packed + (std::int64_t{z} * box.rows + y) * packed_row);
        for (unsigned x = first_x; x < box.words; x += gridDim.x * blockDim.x)
          if constexpr (kDirection == CopyDirection::pack)
            packed_words[x] = row[x];
          else
            row[x] = packed_words[x];
      }
    memory += box.object_stride;
    packed += packed_row * box.rows * box.planes;
  }
}

template <class Word, CopyDirection kDirection>
__global__ void gather_kernel(const std::int32_t* index, std::int64_t words, Word* memory,
                              Word* packed) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= words) return;
  if constexpr (kDirection == CopyDirection::pack)
    packed[i] = memory[index[i]];
  else
    memory[index[i]] = packed[i];
}

// Calls launch(Word()) with the word of 2^word_log2 bytes. with_word() is compiled for devices,
// too, which cannot launch.
template <class Launch>
void launch_with_word(int word_log2, Launch launch) {
  switch (word_log2) {
    case 0:
      return launch(WordOf<0>::type());
    case 1:
      return launch(WordOf<1>::type());
    case 2:
      return launch(WordOf<2>::type());
    case 3:
      return launch(WordOf<3>::type());
    default:
      return launch(WordOf<4>::type());
  }
}

// Returns the smallest power of two that is at least `extent`, at most `limit`.
unsigned encompassing(std::int64_t extent, unsigned limit) {
  return static_cast<unsigned>(
      std::min<std::uint64_t>(std::bit_ceil(static_cast<std::uint64_t>(extent)), limit));
}

unsigned blocks_for(std::int64_t extent, unsigned threads, std::int64_t limit) {
  return static_cast<unsigned>(std::min((extent + threads - 1) / threads, limit));
}

class CudaTwins final : public Twins {
 public:
  explicit CudaTwins(cudaStream_t stream) : stream_(stream) {}

  void empty_kernel() const override {
    do_nothing<<<1, 1, 0, stream_>>>();
    HALOCLINE_CUDA(cudaGetLastError());
  }

  void tempi(const StridedCall& call, CopyDirection direction) const override {
    const auto& block = call.block;
    auto* memory = call.memory + block.start;
    if (block.dimensions == 1) {
      for (std::int64_t i = 0; i < call.count; ++i)
        copy(memory + i * block.extent, call.packed + i * block.counts[0], block.counts[0],
             direction);
      return;
    }
    // The word W must be aligned to the object and its strides (errata B.5), and divide counts[0].
    auto moves = reinterpret_cast<std::uint64_t>(memory) |
                 reinterpret_cast<std::uint64_t>(call.packed) |
                 static_cast<std::uint64_t>(block.counts[0] | block.strides[1] | block.strides[2]);
    if (call.count > 1) moves |= static_cast<std::uint64_t>(block.extent);
    const int log2 = device::word_log2(moves);
    const bool flat = block.dimensions == 2;
    const Box box{static_cast<unsigned>(block.counts[0] >> log2),
                  static_cast<unsigned>(block.counts[1]),
                  static_cast<unsigned>(flat ? call.count : block.counts[2]),
                  static_cast<unsigned>(flat ? 1 : call.count),
                  block.strides[1],
                  flat ? block.extent : block.strides[2],
                  block.extent};
    constexpr unsigned kThreads = 1024, kMaxBlockZ = 64;
    constexpr std::int64_t kMaxGrid = 65535;
    dim3 threads;
    threads.x = encompassing(box.words, kThreads);
    threads.y = encompassing(box.rows, kThreads / threads.x);
    threads.z =
        flat ? 1 : std::min(encompassing(box.planes, kThreads / threads.x / threads.y), kMaxBlockZ);
    const dim3 grid(blocks_for(box.words, threads.x, std::numeric_limits<std::int32_t>::max()),
                    blocks_for(box.rows, threads.y, kMaxGrid),
                    blocks_for(box.planes, threads.z, kMaxGrid));
    launch_with_word(log2, [&](auto word) {
      device::with_direction(direction, [&](auto d) {
        tempi_kernel<decltype(word), decltype(d)::value>
            <<<grid, threads, 0, stream_>>>(memory, call.packed, box);
      });
    });
    HALOCLINE_CUDA(cudaGetLastError());
  }

  void memcpy3d(const StridedCall& call, CopyDirection direction) const override {
    const auto& block = call.block;
    const auto size = [](std::int64_t value) { return static_cast<std::size_t>(value); };
    const auto pitch = std::max(block.strides[1], block.counts[0]);
    for (std::int64_t i = 0; i < call.count; ++i) {
      const auto rows = block.counts[2] > 1 ? block.strides[2] / block.strides[1] : block.counts[1];
      const auto there = make_cudaPitchedPtr(call.memory + block.start + i * block.extent,
                                             size(pitch), size(block.counts[0]), size(rows));
      const auto here = make_cudaPitchedPtr(call.packed + i * block.bytes(), size(block.counts[0]),
                                            size(block.counts[0]), size(block.counts[1]));
      cudaMemcpy3DParms copy{};
      copy.srcPtr = direction == CopyDirection::pack ? there : here;
      copy.dstPtr = direction == CopyDirection::pack ? here : there;
      copy.extent =
          make_cudaExtent(size(block.counts[0]), size(block.counts[1]), size(block.counts[2]));
      copy.kind = cudaMemcpyDefault;
      HALOCLINE_CUDA(cudaMemcpy3DAsync(&copy, stream_));
    }
  }

  void gather(const GatherCall& call, CopyDirection direction) const override {
    constexpr unsigned kThreads = 256;
    const auto blocks = blocks_for(call.words, kThreads, std::numeric_limits<std::int32_t>::max());
    launch_with_word(std::countr_zero(static_cast<std::uint64_t>(call.word)), [&](auto word) {
      using Word = decltype(word);
      device::with_direction(direction, [&](auto d) {
        gather_kernel<Word, decltype(d)::value><<<blocks, kThreads, 0, stream_>>>(
            call.index, call.words, reinterpret_cast<Word*>(call.memory),
            reinterpret_cast<Word*>(call.packed));
      });
    });
    HALOCLINE_CUDA(cudaGetLastError());
  }

 private:
  void copy(std::byte* memory, std::byte* packed, std::int64_t bytes,
            CopyDirection direction) const {
    const bool packs = direction == CopyDirection::pack;
    HALOCLINE_CUDA(cudaMemcpyAsync(packs ? packed : memory, packs ? memory : packed,
                                   static_cast<std::size_t>(bytes), cudaMemcpyDefault, stream_));
  }

  cudaStream_t stream_;
};

}  // namespace

std::unique_ptr<Twins> make_twins(const Device& device, Device::Stream stream) {
  if (device.properties().emulated) return nullptr;
  return std::make_unique<CudaTwins>(static_cast<cudaStream_t>(stream));
}

}  // namespace halocline::dtype::bench
