// SPDX-License-Identifier: BSD-3-Clause
// Provides the common part of all packers that execute tables: they make a table for each plan at
// its first use, and then only launch.
#pragma once

#include <memory>
#include <span>

#include "dtype/pack/device/job_table.hpp"
#include "dtype/pack/packer.hpp"

namespace halocline::dtype {

/// Packs by one launch for all jobs of a plan.
///
/// The first use of a plan makes its tables, and uploads them if it has lists or many jobs. This
/// may take long and synchronise; prepare() does it before. After that a pack allocates nothing. A
/// plan must be used with one device of each kind.
///
/// Copies take one launch. Jobs for which a CopyPlan has no lists take two more: they are packed to
/// memory of the device and unpacked from there. A plan with such jobs must not be in use twice at
/// a time.
class TablePacker : public Packer {
 public:
  void pack(const PackPlan& plan, const void* buffer, std::int64_t count, void* packed) const final;
  void unpack(const PackPlan& plan, const void* packed, void* buffer,
              std::int64_t count) const final;
  void pack(const FusedPlan& plan, void* packed) const final;
  void unpack(const FusedPlan& plan, const void* packed) const final;
  void copy(const CopyPlan& plan) const final;
  void prepare(const PackPlan& plan, const void* buffer, std::int64_t count,
               const void* packed) const final;
  void prepare(const FusedPlan& plan) const final;
  void prepare(const CopyPlan& plan) const final;

 protected:
  using Backend = detail::Attachment::Backend;

  /// Describes a table to be launched. It travels with the launch, padded to argument_bytes(), and
  /// `resident` is null. If argument_bytes() is 0, `resident` points to the table in the memory of
  /// the launches.
  struct Launch {
    const device::JobTable& table;
    const void* resident;
    device::LaunchArguments call;
    device::CopyDirection direction;
    std::uint64_t blocks;
  };

  virtual Backend backend() const = 0;
  /// Returns a copy of the bytes, aligned to 16, in the memory of the launches. It is complete on
  /// return.
  virtual std::shared_ptr<const void> upload(std::span<const std::byte> bytes) const = 0;
  /// Returns the bytes that a launch carries for a table of `bytes` bytes; 0 if it cannot carry the
  /// table.
  virtual std::size_t argument_bytes(std::size_t bytes) const = 0;
  virtual void launch(const Launch& launch) const = 0;

 private:
  struct PlanState;
  struct FusedState;
  struct CopyState;
  struct ResidentTable;

  const PlanState& state_of(const PackPlan& plan) const;
  const FusedState& state_of(const FusedPlan& plan) const;
  const CopyState& state_of(const CopyPlan& plan) const;
  void launch(const ResidentTable& table, device::LaunchArguments call,
              device::CopyDirection direction) const;
  const ResidentTable& table_of(const PackPlan& plan, device::Address memory, std::int64_t count,
                                device::Address packed) const;
  template <class Make>
  const ResidentTable& resident(const ResidentTable& slot, Make make) const;
  void copy(const PackPlan& plan, device::Address memory, std::int64_t count,
            device::Address packed, device::CopyDirection direction) const;
  void copy(const FusedPlan& plan, device::Address packed, device::CopyDirection direction) const;
};

}  // namespace halocline::dtype
