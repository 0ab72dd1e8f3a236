// SPDX-License-Identifier: BSD-3-Clause
// Holds a table of fields for each kind of record. JSON, the JSON Schemas, the tables of the manual
// and the settings that diff.py compares follow from these tables.
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "dtype/model/transfer_selector.hpp"
#include "record.hpp"
#include "table.hpp"

namespace halocline::app {

namespace {

using Json = nlohmann::ordered_json;

template <class T>
constexpr bool kIsPerAxis = false;
template <class T>
constexpr bool kIsPerAxis<comm::PerAxis<T>> = true;

// Writes one value if a value for each axis is the same for all.
template <class T>
Json json_of(const T& value) {
  if constexpr (requires { value.has_value(); })
    return value ? json_of(*value) : Json();
  else if constexpr (NamedEnum<T>)
    return to_string(value);
  else if constexpr (std::is_same_v<T, PerSide<Boundary>>) {
    Json out;
    for (const auto side : value) out.push_back(to_string(side));
    return out;
  } else if constexpr (kIsPerAxis<T>)
    return value.all_alike() ? Json(value[0]) : Json(value);
  else
    return value;
}

// ---- JSON Schemas

// Restricts values by a keyword of JSON Schema.
Json limit(const char* keyword, const Json& bound) {
  return Json::object({{keyword, bound}});
}

Json one_of(const std::vector<std::string>& words) {
  return limit("enum", words);
}

Json or_null(Json schema) {
  if (schema.contains("enum"))
    schema["enum"].push_back(nullptr);
  else
    schema["type"] = Json::array({schema["type"], "null"});
  return schema;
}

// Describes an object that has these properties and no others.
Json closed(const Json& properties) {
  Json out;
  out["type"] = "object";
  out["properties"] = properties;
  for (const auto& property : properties.items()) out["required"].push_back(property.key());
  out["additionalProperties"] = false;
  return out;
}

template <class Members>
Json schema_of(const Members& members, const Json& each) {
  Json properties;
  for (const auto& [name, member] : members) properties[name] = each;
  return closed(properties);
}

// Describes values of type T within the limits of `more`.
template <class T>
Json schema_of(const Json& more) {
  Json out;
  if constexpr (requires(T value) { value.has_value(); }) {
    return or_null(schema_of<typename T::value_type>(more));
  } else if constexpr (NamedEnum<T>) {
    for (const auto value : all_of<T>()) out["enum"].push_back(to_string(value));
  } else if constexpr (std::is_same_v<T, Json>) {
    out["type"] = "object";
  } else if constexpr (std::is_same_v<T, std::map<std::string, std::string>>) {
    out["type"] = "object";
    out["additionalProperties"] = schema_of<std::string>(Json::object());
  } else if constexpr (std::is_same_v<T, bool>) {
    out["type"] = "boolean";
  } else if constexpr (std::is_arithmetic_v<T>) {
    out["type"] = std::is_integral_v<T> ? "integer" : "number";
    out["minimum"] = 0;
  } else if constexpr (std::is_same_v<T, std::string>) {
    out["type"] = "string";
  } else if constexpr (kIsPerAxis<T>) {
    out = schema_of<typename T::value_type>(more);
    out["items"] = out;
    out["type"] = Json::array({out["type"], "array"});
    out["minItems"] = out["maxItems"] = 3;
  } else if constexpr (std::is_same_v<T, comm::Int3>) {
    out["type"] = "array";
    out["items"] = schema_of<std::int64_t>(limit("minimum", 1));
    out["minItems"] = out["maxItems"] = 3;
  } else {
    out["type"] = "array";
    out["items"] = schema_of<typename T::value_type>(Json::object());
  }
  if (more.contains("enum")) out.clear();
  out.update(more);
  return out;
}

// ---- Values that are no members

constexpr std::array kStatistics{
    std::pair{"median_s", &Statistics::median}, std::pair{"p10_s", &Statistics::p10},
    std::pair{"p90_s", &Statistics::p90}, std::pair{"min_s", &Statistics::min},
    std::pair{"max_s", &Statistics::max}};

constexpr std::array kTimeline{
    std::pair{"post_s", &Timeline::post}, std::pair{"interior_s", &Timeline::interior},
    std::pair{"wait_s", &Timeline::wait}, std::pair{"boundary_s", &Timeline::boundary}};

constexpr std::array kModelUsed{
    std::pair{"path", &ModelUsed::path}, std::pair{"time", &ModelUsed::time},
    std::pair{"host", &ModelUsed::host}, std::pair{"git", &ModelUsed::git},
    std::pair{"differences", &ModelUsed::differences}};

std::vector<std::string> transfers() {
  std::vector<std::string> out;
  for (const auto transfer : dtype::all_transfers()) out.emplace_back(dtype::name(transfer));
  return out;
}

Json statistics_of(const std::vector<double>& samples) {
  return statistics_as_json(statistics(samples));
}

// Makes an object with a member for each phase: what `part` makes of its samples.
template <class Part>
auto by_phase(Part part) {
  return [part](const Record& record) {
    Json out;
    for (const auto& [name, member] : kPhases) {
      const auto& samples = record.phases.*member;
      out[name] = samples.empty() ? Json() : Json(part(samples));
    }
    return out;
  };
}

// Makes an object with one list per part of the substep; a list has one number per rank.
Json timeline_of(const Record& record) {
  Json out;  // null without ranks
  for (const auto& rank : record.timeline)
    for (const auto& [name, member] : kTimeline) out[name].push_back(rank.*member);
  return out;
}

std::optional<std::string> state_of(const Record& record) {
  return record.state_hash ? std::optional(format_hash(*record.state_hash)) : std::nullopt;
}

auto time_of(double Statistics::*member) {
  return [member](const GatherRecord& record) {
    return record.samples.empty() ? std::nullopt
                                  : std::optional(statistics(record.samples).*member);
  };
}

std::optional<std::string> limit_of(const PredictRecord& record) {
  if (!record.transfer_s) return std::nullopt;
  return record.injection_limits ? "injection" : "messages";
}

template <class T>
auto of_build(T Build::*member) {
  return [member](const Provenance&) { return build().*member; };
}

auto unless_empty(std::string Provenance::*member) {
  return [member](const Provenance& record) {
    return (record.*member).empty() ? std::nullopt : std::optional(record.*member);
  };
}

Json model_of(const Provenance& record) {
  Json out;
  for (const auto& [name, member] : kModelUsed)
    if (record.model) out[name] = (*record.model).*member;
  return out;
}

// ---- Tables

// Holds the fields of records of type R, in their order.
template <class R>
class Fields {
 public:
  static const Fields& all() {
    static const Fields fields;
    return fields;
  }

  Json values(const R& record) const {
    Json out;
    for (const auto& [name, get] : fields_) out[name] = get(record);
    return out;
  }

  const Json& properties() const { return properties_; }

 private:
  Fields();

  // Adds a field. `get` is a member of R, or makes the value from a record. The schema follows from
  // the type of the value, within the limits of `more`.
  template <class Get>
  void field(const char* name, Get get, const Json& more, const std::string& meaning) {
    auto& schema = properties_[name];
    schema = schema_of<std::decay_t<std::invoke_result_t<Get, const R&>>>(more);
    schema["description"] = meaning;
    fields_.emplace_back(name,
                         [get](const R& record) { return json_of(std::invoke(get, record)); });
  }
  template <class Get>
  void field(const char* name, Get get, const std::string& meaning) {
    field(name, get, Json::object(), meaning);
  }

  // Adds a field that tells experiments apart: diff.py compares records that agree in all of them.
  template <class... Arguments>
  void setting(Arguments... arguments) {
    field(arguments...);
    properties_.back()["setting"] = true;
  }

  // Adds a setting that earlier versions lack: their records had the default of the member.
  template <class... Arguments>
  void newer_setting(Arguments... arguments) {
    setting(arguments...);
    properties_.back()["default"] = fields_.back().second(R{});
  }

  void constant(const char* name, const char* value) {
    const std::string text = value;
    field(
        name, [text](const R&) { return text; }, one_of({text}), "Always `" + text + "`.");
  }

  // Adds what all halos have, measured or predicted.
  void domain() {
    setting("decomposition", &R::decomposition, "Ranks along x, y and z.");
    newer_setting(
        "reorder", &R::reorder,
        "Positions of the ranks in the decomposition: `none` (in rank order, x first) or `node`.");
    setting("local", &R::local, "Points of a rank along x, y and z.");
    setting("global", &R::global, "Points of all ranks together along x, y and z.");
    setting("fields", &R::fields, limit("minimum", 1), "Values per point.");
    setting("layout", &R::layout, "Layout of the values in memory: `soa` or `aos`.");
    newer_setting(
        "pad", &R::pad,
        "Bytes to which the rows of the fields are aligned: `none`, `32`, `64` or `128`.");
    setting("radius", &R::radius, limit("minimum", 1),
            "Ghost points on each side of each axis. A list if axes differ: x, y, z.");
    setting("periodic", &R::periodic,
            "True if opposite sides of the grid are neighbours. A list if axes differ: x, y, z.");
  }

  std::vector<std::pair<const char*, std::function<Json(const R&)>>> fields_;
  Json properties_;
};

template <>
Fields<Record>::Fields() {
  using R = Record;
  const auto storages = one_of({"private", "shared-window", "device"});
  const auto statistics = limit("$ref", "#/$defs/statistics");
  const auto samples = limit("$ref", "#/$defs/samples");
  constant("schema", "halocline/1");
  setting("kind", &R::kind, one_of({"run", "compare"}), "The subcommand: `run` or `compare`.");
  setting("method", &R::method,
          "The method as on the command line: `exchange` or `exchange:transfer`.");
  field("exchange", &R::exchange, "First part of `method`.");
  field("chosen", &R::chosen,
        "The same as `exchange`. For `auto`, the exchange that it stood for.");
  field("transfer", &R::transfer, one_of(transfers()),
        "Second part of `method`, or the transfer that was chosen. For vendor methods, `device` if "
        "MPI gets device memory.");
  newer_setting("memory", &R::memory, "Where the fields are: `host` or `device`.");
  setting(
      "storage", &R::storage, storages,
      "Memory of the fields: `private` to the process, `shared-window` of a node, or `device`.");
  field("shared_memory", &R::shared_memory,
        "What a shared window is: `memory-file` (a file without a name) or `mpi-window`.");
  newer_setting("pages", &R::pages,
                "Pages that the memory of the fields asks for: `huge` (2 MiB) or `small`.");
  field("on_huge_pages", &R::on_huge_pages, limit("maximum", 1),
        "Share of the memory of the fields that is on huge pages, on the rank with the least.");
  setting("ranks", &R::ranks, limit("minimum", 1), "Number of processes.");
  setting("nodes", &R::nodes, limit("minimum", 1), "Number of nodes that the ranks run on.");
  newer_setting("nodes_emulated", &R::nodes_emulated,
                "True if the nodes are emulated (`--ranks-per-node`). MPI then uses shared memory "
                "between them.");
  domain();
  newer_setting("physics", &R::physics, "The physics as configured. `compare` takes its halos.");
  setting("stencil", &R::stencil, "The stencil as configured. `compare` computes none.");
  newer_setting("boundary", &R::boundary, Json{{"minItems", 6}, {"maxItems", 6}},
                "Kinds of the sides x-, x+, y-, y+, z-, z+ as configured. Periodic axes have none, "
                "and `compare` sets no ghosts there.");
  setting("describe", &R::describe, "How the program writes its regions as MPI datatypes.");
  setting("packer", &R::packer,
          "The packer for transfer `host`, as configured. Vendor methods use the packing of MPI.");
  newer_setting("shape", &R::shape, "`direct`: all regions at once. `axes`: slabs, axis by axis.");
  newer_setting("needs_by_field", &R::needs_by_field,
                "True if each field gets only the ghosts that its own stencil reads.");
  newer_setting("neighbors", &R::neighbors, limit("maximum", 26),
                "Directions whose ghosts are needed: 6, 18 or 26. Slabs may bring more.");
  newer_setting("messages_per", &R::messages_per,
                "What a message holds: all data for a `partner` (per round of `axes`), a `region` "
                "or a `field`.");
  setting("element_bytes", &R::element_bytes, limit("minimum", 1), "Bytes of one value.");
  newer_setting("complex", &R::is_complex, "True if a value has a real and an imaginary part.");
  field("bytes_to_others", &R::bytes_to_others,
        "Halo bytes that a rank sends to other ranks in an exchange.");
  field("bytes_to_self", &R::bytes_to_self, "Halo bytes of an exchange that stay on the rank.");
  field("messages", &R::messages, "Messages that a rank sends to other ranks in an exchange.");
  field("bytes_off_node", &R::bytes_off_node,
        "The part of `bytes_to_others` that goes to other nodes.");
  field("bytes_off_node_of_node", &R::bytes_off_node_of_node,
        "Bytes to other nodes from all ranks of one node. The node that sends most counts.");
  field("bytes_off_node_total", &R::bytes_off_node_total, "Bytes to other nodes from all ranks.");
  field("messages_off_node", &R::messages_off_node,
        "The part of `messages` that goes to other nodes.");
  field(
      "iterations", &R::iterations,
      "Timed exchanges; in `run`, timed substeps. With overlap, only substeps that overlap count.");
  setting("threads", &R::threads, limit("minimum", 1), "Threads per rank.");
  field("predicted_s", &R::predicted_s,
        "Seconds of an exchange by the system model (`--model`), on the slowest rank. Null without "
        "a model and for vendor methods.");
  newer_setting("wide", &R::wide, limit("minimum", 1),
                "Substeps for each exchange. The times are those of so many substeps.");
  newer_setting("overlap", &R::overlap,
                "True if the interior is computed between start and finish of the exchange.");
  newer_setting("progress", &R::progress,
                "How often the rank calls MPI between start and finish. Null without overlap.");
  field("phases", by_phase(statistics_of), schema_of(kPhases, statistics),
        "Statistics of each phase in seconds over the iterations. Null if the method has no such "
        "phase.");
  field("timeline", timeline_of, or_null(schema_of(kTimeline, samples)),
        "Lists `post_s`, `interior_s`, `wait_s`, `boundary_s`: for each rank the median of its own "
        "seconds. Null without overlap.");
  field("verified", &R::verified,
        "True if every ghost of three exchanges was right, bit for bit. In `run`, the last ghosts "
        "and the wave must be right too.");
  field("state_hash", state_of, limit("pattern", "^0x[0-9a-f]{16}$"),
        "`0x` and 16 hexadecimal digits: hash of the final fields of `run`. Null in `compare`.");
  field("baseline", &R::baseline,
        "Fastest vendor method of the same `compare`. Null if there is none.");
  field("baseline_storage", &R::baseline_storage, storages,
        "Storage of the fields of the baseline. Null without a baseline.");
  field("baseline_shape", &R::baseline_shape, "Shape of the baseline. Null without a baseline.");
  field("ratio_to_baseline", &R::ratio_to_baseline, limit("exclusiveMinimum", 0),
        "Median total of the baseline divided by the median total of this method: above 1 is "
        "faster. Null without a baseline.");
  field("overlap_ratio", &R::overlap_ratio, limit("exclusiveMinimum", 0),
        "Median `total` divided by the larger median of `plain_compute` and `plain_exchange`: 1 is "
        "the best value. Null without overlap or with a single substep.");
  field("notes", &R::notes, "Sentences that a reader of the numbers must know.");
  field("samples_s", by_phase(std::identity()), schema_of(kPhases, samples),
        "Raw samples of each phase in seconds, one for each iteration. Null if the method has no "
        "such phase.");
}

template <>
Fields<GatherRecord>::Fields() {
  using R = GatherRecord;
  const std::string mpi_decides = " Null for `mpi-gather`: MPI decides.";
  const std::string untimed = " Null if it was not timed.";
  constant("schema", "halocline/1");
  constant("kind", "gather");
  setting("variant", &R::variant, "The variant as on the command line.");
  setting("order", &R::order, "Order of the ranks, as on the command line.");
  setting("bytes_per_rank", &R::bytes_per_rank, "Bytes that each rank contributes.");
  setting("root", &R::root, "The rank that gathers.");
  setting("ranks", &R::ranks, limit("minimum", 1), "Number of processes.");
  setting("nodes", &R::nodes, limit("minimum", 1), "Number of nodes that the ranks run on.");
  setting("nodes_emulated", &R::nodes_emulated,
          "True if the nodes are emulated (`--ranks-per-node`). MPI then uses shared memory "
          "between them.");
  field("local_form", &R::local_form, "Tree within a node: `linear` or `binomial`." + mpi_decides);
  field("bridge_form", &R::bridge_form,
        "Tree between nodes: `linear` or `binomial`." + mpi_decides);
  field("messages_on_node", &R::messages_on_node,
        "Messages between ranks of one node in a gather, of all ranks." + mpi_decides);
  field("bytes_on_node", &R::bytes_on_node, "Bytes of these messages." + mpi_decides);
  field("messages_off_node", &R::messages_off_node,
        "Messages between ranks of different nodes in a gather, of all ranks." + mpi_decides);
  field("bytes_off_node", &R::bytes_off_node, "Bytes of these messages." + mpi_decides);
  field("copied_bytes", &R::copied_bytes,
        "Bytes of its own block that the root copies to their place." + mpi_decides);
  field("reordered_bytes", &R::reordered_bytes,
        "Bytes that the root moves after it received them." + mpi_decides);
  field("iterations", &R::iterations, "Number of timed gathers.");
  field("median_s", time_of(&Statistics::median),
        "Median seconds of a gather on the slowest rank, without making the plan." + untimed);
  field("p10_s", time_of(&Statistics::p10), "10th percentile of these seconds." + untimed);
  field("p90_s", time_of(&Statistics::p90), "90th percentile of these seconds." + untimed);
  field("min_s", time_of(&Statistics::min), "Shortest of these times in seconds." + untimed);
  field("max_s", time_of(&Statistics::max), "Longest of these times in seconds." + untimed);
  field("setup_s", &R::setup_s,
        "Seconds to make the plan, once, on the slowest rank. A single gather takes this time in "
        "addition.");
  field("predicted_s", &R::predicted_s,
        "Seconds by the alpha-beta model that the run measured. Null except for `zero-copy` and "
        "`mpi-gather`, and for nodes of different sizes.");
  field("verified", &R::verified,
        "True if every byte of three gathers was right: the first two of the plan and one after "
        "the timed ones.");
  field("baseline", &R::baseline, one_of({"mpi-gather"}),
        "Always `mpi-gather`. Null if that variant or this one was not timed.");
  field("ratio_to_baseline", &R::ratio_to_baseline,
        "Median of the baseline divided by the median of this variant: above 1 is faster. Null "
        "without a baseline.");
  field("notes", &R::notes, "Sentences that a reader of the numbers must know.");
  field("samples_s", &R::samples, "Raw samples in seconds, one for each timed gather.");
}

template <>
Fields<PredictRecord>::Fields() {
  using R = PredictRecord;
  const std::string missing = " Null if the model lacks a part that is needed.";
  constant("schema", "halocline/1");
  constant("kind", "predict");
  setting("method", &R::method,
          "The method that is predicted: `alltoallv`, in device memory with its transfer.");
  setting("exchange", &R::exchange, one_of({"alltoallv"}), "Always `alltoallv`.");
  setting("transfer", &R::transfer, one_of(transfers()), "How the packed bytes would travel.");
  setting("memory", &R::memory, "Where the fields are: `host` or `device`.");
  setting("nodes", &R::nodes, limit("minimum", 1),
          "Nodes of the predicted machine, not of the job that predicts.");
  setting("ranks", &R::ranks, limit("minimum", 1),
          "Processes on the predicted machine, not in the job that predicts.");
  domain();
  setting("shape", &R::shape, "`direct`: all regions at once. `axes`: slabs, axis by axis.");
  setting("neighbors", &R::neighbors, limit("maximum", 26),
          "Directions whose ghosts are needed: 6, 18 or 26. Slabs may bring more.");
  setting("element_bytes", &R::element_bytes, limit("minimum", 1), "Bytes of one value.");
  field("messages", &R::messages,
        "Messages to other ranks in an exchange, from the rank that sends most messages.");
  field("bytes_off_node_of_node", &R::bytes_off_node_of_node,
        "Halo bytes to other nodes from all ranks of one node. The node that sends most counts.");
  field("bytes_off_node_total", &R::bytes_off_node_total,
        "Halo bytes to other nodes from all ranks.");
  field("pack_s", &R::pack_s, "Seconds of packing on the slowest rank." + missing);
  field("transfer_s", &R::transfer_s, "Seconds of the transfer on the slowest rank." + missing);
  field("unpack_s", &R::unpack_s,
        "Seconds of unpacking on the slowest rank, with the copy of the bytes that stay on the "
        "rank." +
            missing);
  field("total_s", &R::total_s, "Seconds of the exchange on the slowest rank." + missing);
  field("limited_by", limit_of, one_of({"messages", "injection"}),
        "What sets `transfer_s`: the `messages` of the slowest rank, or the `injection` of all "
        "bytes that leave its node. Null if not known.");
  field("unknown", &R::unknown,
        "Why there is no `total_s`: the first part of the model that was not measured, or not for "
        "that size. Null if there is a total.");
}

template <>
Fields<Provenance>::Fields() {
  using R = Provenance;
  field("version", of_build(&Build::version), "Version of Halocline.");
  field("git", of_build(&Build::git), "Commit; `unknown` outside of a repository.");
  field("dirty", of_build(&Build::dirty),
        "True if tracked files differed from the commit. Null if not known.");
  field("compiler", of_build(&Build::compiler), "Compiler of the program.");
  field("flags", of_build(&Build::flags), "Flags of the compiler.");
  field("build_type", of_build(&Build::type), "Build type of CMake.");
  setting("mpi_library", &R::mpi_library, "What the MPI library says of itself.");
  field("mpi_standard", &R::mpi_standard, "Version of the MPI standard.");
  newer_setting("interposed", &R::interposed,
                "True if another library stands in front of MPI, as `libhalocline_mpi.so` may.");
  field("kokkos", &R::kokkos_version, "Version of Kokkos.");
  field("kokkos_spaces", &R::kokkos_spaces, "Execution spaces of Kokkos.");
  field("cuda", unless_empty(&R::cuda), "Driver of the device. Null without a device.");
  setting("cpus", &R::cpus, limit("minItems", 1), "Names of the processors, each name once.");
  setting("gpus", &R::gpus, "Names of the devices, each name once.");
  field("hosts", &R::hosts, limit("minItems", 1), "Names of the hosts, each name once.");
  field(
      "gpu_aware_mpi", unless_empty(&R::gpu_aware_mpi),
      "Whether MPI takes messages in device memory, and how that is known. Null for host fields.");
  field("binding", &R::binding, "Hardware threads that each rank may use.");
  field("time", &R::time,
        limit("pattern", "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$"),
        "When the measurement began, in UTC.");
  field("environment", &R::environment, "Variables that tune MPI, OpenMP and Kokkos, from rank 0.");
  field("model", model_of, or_null(schema_of(kModelUsed, limit("type", "string"))),
        "The system model that chose transfers. Null without a model.");
  field(
      "config", [](const R& record) { return Json::parse(record.config); },
      "The effective configuration.");
}

// ---- Schemas of records

template <class R>
Json schema_of_records(const std::string& commands, Json provenance) {
  auto properties = Fields<R>::all().properties();
  provenance["description"] = "Program, MPI, machine, configuration and system model.";
  properties["provenance"] = provenance;
  auto out = limit("$schema", "https://json-schema.org/draft/2020-12/schema");
  out["title"] = "A line of halocline " + commands + " --output, schema halocline/1";
  out.update(closed(properties));
  return out;
}

}  // namespace

Json statistics_as_json(const Statistics& statistics) {
  Json out;
  for (const auto& [name, member] : kStatistics) out[name] = statistics.*member;
  return out;
}

Json to_json(const Provenance& provenance) {
  return Fields<Provenance>::all().values(provenance);
}

template <class R>
Json record_as_json(const R& record, const Provenance& provenance) {
  auto out = Fields<R>::all().values(record);
  out["provenance"] = to_json(provenance);
  return out;
}
template Json record_as_json(const Record&, const Provenance&);
template Json record_as_json(const GatherRecord&, const Provenance&);
template Json record_as_json(const PredictRecord&, const Provenance&);

std::string schemas_as_json() {
  Json out;
  auto& of_runs = out["schema.json"] =
      schema_of_records<Record>("run or compare", closed(Fields<Provenance>::all().properties()));
  of_runs["$defs"]["statistics"] =
      or_null(schema_of(kStatistics, schema_of<double>(Json::object())));
  of_runs["$defs"]["samples"] = or_null(schema_of<std::vector<double>>(limit("minItems", 1)));
  const auto same = limit("$ref", "schema.json#/properties/provenance");
  out["gather.schema.json"] = schema_of_records<GatherRecord>("gather", same);
  out["predict.schema.json"] = schema_of_records<PredictRecord>("predict", same);
  return out.dump(1) + "\n";
}

}  // namespace halocline::app
