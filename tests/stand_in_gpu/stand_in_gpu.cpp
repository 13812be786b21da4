// A device "cuda" that computes on the CPU; see stand_in_gpu.py.
//
// torch for the CPU knows of CUDA tensors, but has nothing that computes with them. Here every operator that is called
// with one is called with the same memory under the name of the CPU, and what comes back is renamed. So results are
// those of the CPU, while a tensor of the CPU among those of the GPU is an error, as on a real one.

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace {

using at::Tensor;
using c10::DispatchKey;
using c10::IValue;

const c10::Device GPU(c10::DeviceType::CUDA, 0), CPU(c10::DeviceType::CPU);

c10::Stream only_stream() { return c10::Stream(c10::Stream::DEFAULT, GPU); }

// One device, one stream, nothing to wait for.
struct Guard final : c10::impl::NoOpDeviceGuardImpl<c10::DeviceType::CUDA> {
  c10::Device exchangeDevice(c10::Device) const override { return GPU; }
  c10::Device getDevice() const override { return GPU; }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  c10::Stream getStream(c10::Device) const noexcept override { return only_stream(); }
  c10::Stream getNewStream(c10::Device, int) const override { return only_stream(); }
  c10::Stream exchangeStream(c10::Stream) const noexcept override { return only_stream(); }
  c10::Stream getDefaultStream(c10::Device) const override { return only_stream(); }
  c10::Stream getStreamFromGlobalPool(c10::Device, bool) const override { return only_stream(); }
  void record(void**, const c10::Stream&, const c10::DeviceIndex, const c10::EventFlag) const override {}
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void destroyEvent(void*, const c10::DeviceIndex) const noexcept override {}
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override {}
  void synchronizeEvent(void*) const override {}
  void synchronizeDevice(const c10::DeviceIndex) const override {}
  void recordDataPtrOnStream(const c10::DataPtr&, const c10::Stream&) const override {}
};

// Memory under another name keeps the memory that it is.
void release(void* held) { delete static_cast<c10::Storage*>(held); }

c10::Storage renamed(const c10::Storage& storage, c10::Device device) {
  c10::DataPtr data(storage.mutable_data(), new c10::Storage(storage), &release, device);
  return c10::Storage(
      c10::Storage::use_byte_size_t(), storage.nbytes(), std::move(data), c10::GetAllocator(CPU.type()), true);
}

// The shape of one tensor over a storage.
Tensor over(const c10::Storage& storage, const Tensor& shaped, DispatchKey key, bool is_inference) {
  c10::InferenceMode mode(is_inference);
  Tensor made = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(storage), c10::DispatchKeySet(key), shaped.dtype());
  made.unsafeGetTensorImpl()->set_sizes_and_strides(shaped.sizes(), shaped.strides(), shaped.storage_offset());
  return made;
}

// The tensors of one call of an operator, as the GPU's and as the CPU's.
struct Call {
  std::vector<std::pair<Tensor, Tensor>> known;

  Tensor to_cpu(const Tensor& tensor) {
    if (!tensor.defined() || !tensor.is_cuda()) return tensor;
    c10::Storage storage;
    for (auto& [gpu, cpu] : known) {
      if (gpu.is_same(tensor)) return cpu;
      if (gpu.storage().is_alias_of(tensor.storage())) storage = cpu.storage();
    }
    if (!storage) storage = renamed(tensor.storage(), CPU);
    Tensor cpu = over(storage, tensor, DispatchKey::CPU, tensor.is_inference());
    if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) cpu.unsafeGetTensorImpl()->set_wrapped_number(true);
    known.emplace_back(tensor, cpu);
    return cpu;
  }

  Tensor to_gpu(const Tensor& tensor) {
    if (!tensor.defined()) return tensor;
    for (auto& [gpu, cpu] : known)
      if (cpu.is_same(tensor)) return gpu;
    for (auto& [gpu, cpu] : known)
      if (cpu.storage().is_alias_of(tensor.storage()))
        return over(gpu.storage(), tensor, DispatchKey::CUDA, gpu.is_inference());
    return over(renamed(tensor.storage(), GPU), tensor, DispatchKey::CUDA, c10::InferenceMode::is_enabled());
  }

  // What was given another size or other memory in place is so on the GPU too.
  void take_over() {
    for (auto& [gpu, cpu] : known) {
      const bool moved = cpu.storage().data() != gpu.storage().data();
      if (moved) gpu.unsafeGetTensorImpl()->set_storage_keep_dtype(renamed(cpu.storage(), GPU));
      if (moved || cpu.sizes() != gpu.sizes() || cpu.strides() != gpu.strides())
        gpu.unsafeGetTensorImpl()->set_sizes_and_strides(cpu.sizes(), cpu.strides(), cpu.storage_offset());
    }
  }
};

template <typename Change>
void change_tensors(IValue& value, Change change) {
  if (value.isTensor()) {
    value = change(value.toTensor());
  } else if (value.isTensorList()) {
    c10::List<Tensor> changed;
    for (const Tensor& tensor : value.toTensorVector()) changed.push_back(change(tensor));
    value = changed;
  } else if (value.isOptionalTensorList()) {
    c10::List<std::optional<Tensor>> changed;
    for (std::optional<Tensor> tensor : value.toOptionalTensorList())
      changed.push_back(tensor ? std::make_optional(change(*tensor)) : std::nullopt);
    value = changed;
  }
}

// Operators that take tensors of both devices.
const std::set<std::string> MIXED{"aten::index.Tensor", "aten::index_put_", "aten::_index_put_impl_"};

void on_cpu(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  const c10::FunctionSchema& schema = op.schema();
  Call call;
  bool is_gpus = false;
  const c10::Argument* stranger = nullptr;
  const size_t first = stack->size() - schema.arguments().size();
  for (size_t place = 0; place < schema.arguments().size(); ++place) {
    IValue& value = (*stack)[first + place];
    if (value.isDevice() && value.toDevice().is_cuda()) {
      is_gpus = true;
      value = CPU;
    } else if (value.isGenerator()) {
      value = IValue();
    } else {
      change_tensors(value, [&](const Tensor& tensor) {
        if (tensor.defined() && tensor.is_cuda()) is_gpus = true;
        if (tensor.defined() && tensor.is_cpu() && tensor.dim() > 0) stranger = &schema.arguments()[place];
        return call.to_cpu(tensor);
      });
    }
  }
  TORCH_CHECK(
      !is_gpus || !stranger || MIXED.count(schema.name()),
      "Expected all tensors to be on the same device: ", schema.name(), " has '", stranger ? stranger->name() : "",
      "' on the CPU");
  op.redispatchBoxed(c10::DispatchKeySet(DispatchKey::CPU), stack);
  call.take_over();
  if (!is_gpus) return;
  for (size_t place = stack->size() - schema.returns().size(); place < stack->size(); ++place)
    change_tensors((*stack)[place], [&](const Tensor& tensor) { return call.to_gpu(tensor); });
}

Tensor& copy(Tensor& self, const Tensor& source, bool) {
  Call call;
  call.to_cpu(self).copy_(call.to_cpu(source));
  return self;
}

// Of torch's ways to attention the one that is made of other operators.
int64_t choose_attention(
    const Tensor&, const Tensor&, const Tensor&, const std::optional<Tensor>&, double, bool, std::optional<double>,
    bool) {
  return 0;
}

TORCH_LIBRARY_IMPL(_, CUDA, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&on_cpu>());
}

TORCH_LIBRARY_IMPL(aten, CUDA, library) {
  library.impl("copy_", TORCH_FN(copy));
  library.impl("_fused_sdp_choice", TORCH_FN(choose_attention));
}

}  // namespace

namespace c10::impl {
C10_REGISTER_GUARD_IMPL(CUDA, Guard)
}

namespace at {

// torch looks for this name.
struct CUDAHooks final : CUDAHooksInterface {
  explicit CUDAHooks(CUDAHooksArgs) {}
  void init() const override {}
  bool hasCUDA() const override { return true; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(DeviceIndex) const override { return true; }
  DeviceIndex deviceCount() const override { return 1; }
  DeviceIndex getCurrentDevice() const override { return 0; }
  DeviceIndex current_device() const override { return 0; }
  void setCurrentDevice(DeviceIndex) const override {}
  int getNumGPUs() const override { return 1; }
};

REGISTER_CUDA_HOOKS(CUDAHooks)

}  // namespace at
