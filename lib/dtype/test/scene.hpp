// SPDX-License-Identifier: BSD-3-Clause
// Compares one call of any packer with the type map: the memory that it may touch, its packed
// bytes, and what unpacking must leave alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "dtype/pack/pack_plan.hpp"
#include "random_call.hpp"

namespace halocline::dtype::test {

using Bytes = std::vector<unsigned char>;

/// Fills memory: holds two different values for every byte.
struct Noise {
  explicit Noise(std::uint64_t seed)
      : bytes(CallGenerator::kMaxSpan), complement(CallGenerator::kMaxSpan) {
    std::mt19937_64 engine(seed);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = static_cast<unsigned char>(engine());
      complement[i] = static_cast<unsigned char>(~bytes[i]);
    }
  }
  Bytes bytes, complement;
};

/// Holds the bytes that a call may touch, and no more. AddressSanitizer then sees every stray
/// access.
class Memory {
 public:
  Memory(const std::vector<std::int64_t>& displacements, std::int64_t offset) : offset_(offset) {
    if (displacements.empty()) return;
    const auto [least, greatest] = std::minmax_element(displacements.begin(), displacements.end());
    first_ = *least;
    length_ = *greatest + 1 - *least;
    bytes_ = std::make_unique_for_overwrite<unsigned char[]>(
        static_cast<std::size_t>(offset_ + length_));
  }

  std::int64_t length() const { return length_; }
  unsigned char* data() const { return bytes_.get() + offset_; }
  unsigned char& at(std::int64_t displacement) const { return data()[displacement - first_]; }
  void fill(const Bytes& values) const { std::copy_n(values.begin(), length_, data()); }
  // Returns the buffer argument of the call, which may lie outside of the bytes. It is computed as
  // an integer, since it may point into no array.
  void* buffer() const {
    return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(bytes_.get()) +
                                   static_cast<std::uintptr_t>(offset_ - first_));
  }

 private:
  std::int64_t offset_, first_ = 0, length_ = 0;
  std::unique_ptr<unsigned char[]> bytes_;
};

/// Holds the packed stream between guard bytes.
class Stream {
 public:
  Stream(std::int64_t length, std::int64_t offset)
      : begin_(kGuard + offset),
        bytes_(static_cast<std::size_t>(begin_ + length + kGuard), kMark) {}

  unsigned char* data() { return bytes_.data() + begin_; }
  bool guards_intact(std::int64_t length) const {
    const auto is_mark = [](unsigned char byte) { return byte == kMark; };
    return std::all_of(bytes_.begin(), bytes_.begin() + begin_, is_mark) &&
           std::all_of(bytes_.begin() + begin_ + length, bytes_.end(), is_mark);
  }

 private:
  static constexpr std::int64_t kGuard = 64;
  static constexpr unsigned char kMark = 0xA5;
  std::int64_t begin_;
  Bytes bytes_;
};

inline std::string describe(const Call& call) {
  return std::to_string(call.count) + " x " + to_string(*call.expr) + ", buffer at +" +
         std::to_string(call.memory_offset) + ", packed at +" + std::to_string(call.packed_offset);
}

inline std::string first_difference(const unsigned char* got, const unsigned char* expected,
                                    std::int64_t length) {
  if (std::equal(got, got + length, expected)) return "";
  for (std::int64_t i = 0; i < length; ++i)
    if (got[i] != expected[i])
      return "byte " + std::to_string(i) + " is " + std::to_string(got[i]) + ", expected " +
             std::to_string(expected[i]);
  return "";
}

/// Holds a call's bytes before and after: the expected packed bytes, and the expected result of
/// unpacking them.
class Scene {
 public:
  Scene(const Call& call, const std::vector<std::int64_t>& displacements, const Noise& noise)
      : length_(std::ssize(displacements)),
        displacements_(displacements),
        source_(displacements, call.memory_offset),
        destination_(displacements, call.memory_offset),
        bytes_(noise.bytes),
        complement_(noise.complement) {
    source_.fill(noise.bytes);
    packed_.reserve(displacements.size());
    for (const auto displacement : displacements) packed_.push_back(source_.at(displacement));

    // Every byte of the destination starts with a value that is wrong for it.
    destination_.fill(complement_);
    for (const auto displacement : displacements) {
      auto& byte = destination_.at(displacement);
      if (byte == source_.at(displacement)) unpackable_ = false;
      byte = source_.at(displacement);
    }
    unpacked_.assign(destination_.data(), destination_.data() + destination_.length());
  }

  /// Returns the first mistake of a packer; nothing if it makes none.
  template <class AnyPacker>
  std::optional<std::string> wrong(AnyPacker&& packer, std::string name, const PackPlan& plan,
                                   const Call& call) const {
    Stream stream(length_, call.packed_offset);
    packer.pack(plan, source_.buffer(), call.count, stream.data());
    packer.fence();
    if (auto difference = first_difference(stream.data(), packed_.data(), length_);
        !difference.empty())
      return name + "::pack: " + difference;
    if (!stream.guards_intact(length_)) return name + "::pack writes outside of the packed bytes";

    if (!unpackable_) return std::nullopt;
    destination_.fill(complement_);
    packer.unpack(plan, stream.data(), destination_.buffer(), call.count);
    packer.fence();
    if (auto difference =
            first_difference(destination_.data(), unpacked_.data(), destination_.length());
        !difference.empty())
      return name + "::unpack: memory " + difference;
    if (!stream.guards_intact(length_)) return name + "::unpack writes into the packed buffer";
    return std::nullopt;
  }

  /// Returns a mistake of a packer in unpacking several bytes to one place: the last byte must stay
  /// there. Returns nothing if all places differ.
  template <class AnyPacker>
  std::optional<std::string> wrong_order(AnyPacker&& packer, std::string name, const PackPlan& plan,
                                         const Call& call) const {
    if (unpackable_) return std::nullopt;
    Stream stream(length_, call.packed_offset);
    std::copy_n(bytes_.begin(), length_, stream.data());
    destination_.fill(complement_);
    for (std::int64_t i = 0; i < length_; ++i)
      destination_.at(displacements_[static_cast<std::size_t>(i)]) = stream.data()[i];
    const Bytes expected(destination_.data(), destination_.data() + destination_.length());
    destination_.fill(complement_);
    packer.unpack(plan, stream.data(), destination_.buffer(), call.count);
    packer.fence();
    const auto difference =
        first_difference(destination_.data(), expected.data(), destination_.length());
    if (difference.empty()) return std::nullopt;
    return name + "::unpack of overlapping places: memory " + difference;
  }

 private:
  std::int64_t length_;
  const std::vector<std::int64_t>& displacements_;
  Memory source_, destination_;
  const Bytes &bytes_, &complement_;
  Bytes packed_, unpacked_;
  bool unpackable_ = true;  // false if a byte is there twice: overlap must not be received into
};

}  // namespace halocline::dtype::test
