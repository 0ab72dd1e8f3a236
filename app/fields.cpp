// SPDX-License-Identifier: BSD-3-Clause
#include "fields.hpp"

namespace halocline::app {

namespace {

constexpr std::size_t kAlignment = 4096;

}  // namespace

template <class T>
std::int64_t FieldSet<T>::bytes(const Domain& domain) {
  const auto points = comm::Box{{}, domain.extents_in_memory()}.points();
  const auto elements = domain.left_padding() + points * domain.elements_per_point();
  const auto array = static_cast<std::size_t>(elements) * sizeof(T);
  return static_cast<std::int64_t>((array + kAlignment - 1) / kAlignment * kAlignment) *
         domain.arrays();
}

template <class T>
FieldSet<T>::FieldSet(const Domain& domain, dtype::ResourceCache* resources, std::byte* memory)
    : resources_(resources),
      arrays_(domain.arrays()),
      left_padding_(domain.left_padding()),
      host_memory_(memory) {
  const auto [row, rows, planes] = domain.extents_in_memory();
  extents_ = {static_cast<std::size_t>(planes), static_cast<std::size_t>(rows),
              static_cast<std::size_t>(row * domain.elements_per_point())};
  bytes_ = static_cast<std::size_t>(bytes(domain) / arrays_);

  if (host_memory_ == nullptr) {
    memory_ = comm::PagedMemory(static_cast<std::int64_t>(all_bytes()), domain.pages);
    host_memory_ = memory_.data();
  }
  if (resources != nullptr)
    device_memory_ = resources->buffer(dtype::MemoryKind::device, all_bytes());
}

template <class T>
T* FieldSet<T>::working_address(int index) const {
  return at(resources_ != nullptr ? device_memory_.data() : host_memory_, index);
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
  resources_->device().copy(device_memory_.data(), host_memory_, all_bytes(), nullptr);
  resources_->device().synchronize(nullptr);
}

template <class T>
void FieldSet<T>::from_device() const {
  if (resources_ == nullptr) return;
  resources_->device().copy(host_memory_, device_memory_.data(), all_bytes(), nullptr);
  resources_->device().synchronize(nullptr);
}

template <class T>
std::vector<void*> FieldSet<T>::addresses() const {
  std::vector<void*> out;
  for (int i = 0; i < arrays(); ++i) out.push_back(address(i));
  return out;
}

template class FieldSet<double>;
template class FieldSet<float>;

}  // namespace halocline::app
