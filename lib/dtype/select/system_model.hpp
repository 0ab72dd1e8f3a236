// SPDX-License-Identifier: BSD-3-Clause
// What was measured on a machine to tell how long transfers of packed bytes take, and where: the
// system model of [PEA21 sections 4 and 6.3], and its file.
//
// Best peer: [PEA21]'s file holds four curves and four pack tables over size and block length at
// one stride, and does not say which machine it is of. Here stride, messages at once and both paths
// are measured as well, what is missing is known to be, and the model of another machine is
// refused.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dtype/select/time_table.hpp"

namespace halocline::dtype {

/// Where a model comes from.
struct ModelProvenance {
  std::string time;  ///< UTC, ISO 8601
  std::string cpu;
  std::string gpu;     ///< empty: there is none
  std::string driver;  ///< the GPU's
  std::string mpi;     ///< library string
  std::string host;
  std::string git;        ///< revision of the program that measured
  bool emulated = false;  ///< the device was emulated on the host
  bool operator==(const ModelProvenance&) const = default;
};

/// Between two ranks of one node, and of two. One way: half a ping-pong.
struct MessagePaths {
  std::optional<MessageTimes> on_node, off_node;
  bool operator==(const MessagePaths&) const = default;
};

/// Packing and unpacking by one executor, for one place of the packed bytes.
struct PackTimes {
  std::optional<PackTable> pack, unpack;
  bool operator==(const PackTimes&) const = default;
};

/// Everything that was measured; what was not is nullopt. What a stream does is measured from the
/// call, with the stream idle, to the end of a synchronization, and stands here less
/// synchronize_seconds and, for kernels, launch_seconds: work that shares these can be added up.
struct SystemModel {
  ModelProvenance provenance;

  std::optional<double> launch_seconds;       ///< of a kernel that does nothing
  std::optional<double> synchronize_seconds;  ///< with a stream that has nothing left to do

  /// Of a node, one way: what all of its ranks together send to other nodes, as long as they send
  /// enough. It limits them as the bandwidth of each rank limits that rank: max-rate [GOS16].
  std::optional<double> injection_bytes_per_second;

  MessagePaths host_messages;  ///< [PEA21] T_cpu-cpu: between pinned host memory
  /// Likewise, of bytes that are not one run of memory, which MPI moves as it moves derived types.
  MessagePaths streamed_messages;
  MessagePaths device_messages;         ///< [PEA21] T_gpu-gpu: between device memory
  std::optional<Curve> device_to_host;  ///< [PEA21] T_d2h: a copy to pinned host memory
  std::optional<Curve> host_to_device;  ///< [PEA21] T_h2d: a copy from there
  PackTimes device_packing;             ///< [PEA21] T_gpu-pack, -unpack: kernels, device memory
  PackTimes mapped_packing;  ///< [PEA21] T_host-pack, -unpack: kernels, mapped pinned host memory
  PackTimes host_packing;    ///< the host packer, without a stream

  /// Parts that were cut short, an entry for each, with the bytes that it reaches and should have
  /// reached.
  std::vector<std::string> incomplete;
  /// Points whose samples did not agree, or contradicted those of others, to the end.
  std::vector<std::string> noisy;

  bool operator==(const SystemModel&) const = default;
};

/// Returns the points that take over 10 times as long as a longer one beside them, or over 40 times
/// as long as their bytes and the shorter one beside them explain: nothing but a disturbed
/// measurement does. In words, one entry for each. O(size).
std::vector<std::string> odd_points(const SystemModel& model);

/// Returns one line for the user of a model on what is wrong with it (incomplete or ending below
/// kBandwidthBytes, noisy, odd_points()) and the remedy; empty if nothing is. O(size).
std::string flaws_of(const SystemModel& model, const std::string& path);

/// The model as a JSON object of schema halocline-model/1. Bytes and counts are integers, times are
/// seconds; keys of what was not measured are absent, and so are "incomplete" and "noisy" where
/// nothing is. O(size).
std::string to_json(const SystemModel& model);

/// The model of such an object; numbers are the same bit by bit. Throws ConfigError that names
/// `source` and the key for anything else: no JSON, another schema, keys that are unknown or
/// missing, points that do not ascend, times that are not positive, sizes that do not fit. O(size).
SystemModel parse_model(std::string_view json, const std::string& source);

/// parse_model() of a file. Throws ConfigError, also if there is none: whoever can do without a
/// model looks first.
SystemModel read_model(const std::string& path);

/// Writes the file, whole or not at all: to a new file beside it, which then takes its name. Makes
/// the folder if there is none. Throws ConfigError if the path cannot be written to or the model
/// could not be read again, EnvironmentError if the disk is full or fails; an older file is then as
/// it was.
void write_model(const SystemModel& model, const std::string& path);

/// Throws what write_model() would if `path` cannot be written to, so that nobody measures in vain.
/// Makes the folder if there is none, and leaves nothing else behind.
void require_writable_model(const std::string& path);

/// Returns in what `model` is not of this machine: names and values of cpu, gpu, driver and mpi as
/// far as they differ, empty if none does. The host may be another. Throws ConfigError that says so
/// if one differs, unless `force`.
std::string require_match(const ModelProvenance& model, const ModelProvenance& machine, bool force);

/// Where the model of this user is: $HALOCLINE_MODEL, else $XDG_CONFIG_HOME/halocline/model.json,
/// else $HOME/.config/halocline/model.json; variables that are empty, and an XDG_CONFIG_HOME that
/// is not absolute, count as not set. Throws ConfigError if none is set.
std::string default_model_path();

}  // namespace halocline::dtype
