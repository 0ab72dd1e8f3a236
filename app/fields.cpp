// SPDX-License-Identifier: BSD-3-Clause
#include "fields.hpp"

#include <cstdlib>

#include "dtype/support/error.hpp"

namespace halocline::app {

namespace {

constexpr std::size_t kAlignment = 4096;

}  // namespace

template <class T>
std::int64_t FieldSet<T>::bytes(const Domain& domain) {
  const auto points = comm::Box{{}, domain.halo.stored()}.points();
  const auto array = static_cast<std::size_t>(points * domain.elements_per_point()) * sizeof(T);
  return static_cast<std::int64_t>((array + kAlignment - 1) / kAlignment * kAlignment) *
         domain.arrays();
}

template <class T>
FieldSet<T>::FieldSet(const Domain& domain, dtype::ResourceCache* resources, std::byte* memory)
    : resources_(resources), host_memory_(memory) {
  const auto stored = domain.halo.stored();
  const auto row = static_cast<std::size_t>(stored[0] * domain.elements_per_point());
  const auto rows = static_cast<std::size_t>(stored[1]),
             planes = static_cast<std::size_t>(stored[2]);
  const auto arrays = static_cast<std::size_t>(domain.arrays());
  bytes_ = static_cast<std::size_t>(bytes(domain)) / arrays;

  if (host_memory_ == nullptr) {
    memory_.reset(std::aligned_alloc(kAlignment, bytes_ * arrays));
    if (!memory_)
      throw EnvironmentError("no memory for the fields (" + std::to_string(bytes_ * arrays) +
                             " bytes on one rank): use a smaller local size or fewer fields");
    host_memory_ = static_cast<std::byte*>(memory_.get());
  }
  for (std::size_t i = 0; i < arrays; ++i)
    arrays_.emplace_back(reinterpret_cast<T*>(host_memory_ + i * bytes_), planes, rows, row);
  if (resources != nullptr)
    device_memory_ = resources->buffer(dtype::MemoryKind::device, bytes_ * arrays);
}

template <class T>
std::byte* FieldSet<T>::working_address(int index) const {
  auto* const first = resources_ != nullptr ? device_memory_.data() : host_memory_;
  return first + static_cast<std::size_t>(index) * bytes_;
}

template <class T>
bool FieldSet<T>::on_device() const {
  return resources_ != nullptr && !resources_->device().properties().emulated;
}

template <class T>
std::vector<void*> FieldSet<T>::working_addresses() const {
  std::vector<void*> out;
  for (int i = 0; i < arrays(); ++i) out.push_back(working_address(i));
  return out;
}

template <class T>
void FieldSet<T>::to_device() const {
  if (resources_ == nullptr) return;
  resources_->device().copy(device_memory_.data(), host_memory_, bytes_ * arrays_.size(), nullptr);
  resources_->device().synchronize(nullptr);
}

template <class T>
void FieldSet<T>::from_device() const {
  if (resources_ == nullptr) return;
  resources_->device().copy(host_memory_, device_memory_.data(), bytes_ * arrays_.size(), nullptr);
  resources_->device().synchronize(nullptr);
}

template <class T>
std::vector<void*> FieldSet<T>::addresses() const {
  std::vector<void*> out;
  for (const auto& view : arrays_) out.push_back(view.data());
  return out;
}

template class FieldSet<double>;
template class FieldSet<float>;

ElementMap::ElementMap(const Domain& domain, int array_index)
    : radius(domain.halo.radius),
      elements_per_point(domain.elements_per_point()),
      array(array_index),
      fields(domain.fields),
      periodic(domain.decomposition.periodic()) {
  for (std::size_t axis = 0; axis < 3; ++axis) {
    first[axis] = domain.owned.begin[axis] - radius;
    extent[axis] = domain.owned.extent[axis];
    global[axis] = domain.decomposition.global()[axis];
  }
}

}  // namespace halocline::app
