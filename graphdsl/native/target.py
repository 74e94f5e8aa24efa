"""The machine that code is made for: which CPU, how wide its vectors are, what it lacks.

Also the way from IR to an object: one pass pipeline, no fast-math, nothing contracted. The bits of a result never
depend on the target; `GRAPHDSL_CPU` narrows it (`sse2`, `sse4`, `avx`, `avx2`, `avx512`), so that tests can see to
that.
"""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import llvmlite.binding as llvm

if TYPE_CHECKING:
    from llvmlite import ir

# What each name stands for: LLVM's CPU, more features, bits of a vector, fma in hardware, rounding in hardware.
_NARROWED = {
    "sse2": ("x86-64", "", 128, False, False),
    "sse4": ("x86-64-v2", "", 128, False, True),
    "avx": ("x86-64-v2", "+avx", 256, False, True),
    "avx2": ("x86-64-v3", "", 256, True, True),
    "avx512": ("x86-64-v4", "", 512, True, True),
}


_LONG = 4_000  # lines of IR: what is longer gets fewer passes, for some take half the time and gain it little


@dataclass(frozen=True)
class Target:
    """A CPU to make code for. What it lacks (`fma`, `rounds`) is emulated, to the same bits."""

    triple: str
    cpu: str
    features: str
    vector_bits: int
    fma: bool
    rounds: bool

    @property
    def key(self) -> str:
        """All that the code made for it depends on, beside its source."""
        version = ".".join(str(n) for n in llvm.llvm_version_info)
        return f"{self.triple} {self.cpu} {self.features} {self.vector_bits} llvm {version}"

    def lanes(self, bits: int) -> int:
        """How many elements of that many bits fill a vector register."""
        return self.vector_bits // bits

    def module(self, name: str) -> ir.Module:
        """An empty module for this target."""
        from llvmlite import ir  # not needed to link what the cache has

        module = ir.Module(name)
        module.triple = self.triple
        module.data_layout = str(_machine(self).target_data)
        return module

    def object_code(self, text: str, loops: bool = True) -> bytes:
        """The object made of a module's IR, optimised; without `loops`, loops are neither unrolled nor made vector
        code.
        """
        return bytes(_machine(self).emit_object(self.optimised(text, loops)))

    def optimised(self, text: str, loops: bool = True) -> Any:
        """The module after the pass pipeline."""
        module = llvm.parse_assembly(text)
        module.verify()
        plain = 2 if text.count("\n") < _LONG else 1
        options = llvm.create_pipeline_tuning_options(speed_level=3 if loops else plain)
        options.loop_vectorization = loops
        options.loop_interleaving = loops
        options.loop_unrolling = loops
        options.slp_vectorization = loops
        builder = llvm.create_pass_builder(_machine(self), options)
        builder.getModulePassManager().run(module, builder)
        return module

    def assembly(self, text: str, loops: bool = True) -> str:
        """The machine code as text."""
        return str(_machine(self).emit_assembly(self.optimised(text, loops)))


def function(module: ir.Module, target: Target, name: str, type: ir.FunctionType, private: bool = False) -> ir.Function:
    """A new function with the attributes that all our code has.

    `no-builtins`: loops stay loops, no call of libc or libm is made up. The vector width is stated, because some CPUs
    with wide vectors are tuned to avoid them.
    """
    from llvmlite import ir

    made = ir.Function(module, type, name)
    if private:
        made.linkage = "internal"
    made.attributes.add("nounwind")
    # llvmlite knows no string attributes
    set.add(made.attributes, '"no-builtins"')
    set.add(made.attributes, f'"prefer-vector-width"="{target.vector_bits}"')
    set.add(made.attributes, f'"min-legal-vector-width"="{target.vector_bits}"')
    return made


@cache
def host() -> Target:
    """This machine, or what `GRAPHDSL_CPU` narrows it to."""
    name = os.environ.get("GRAPHDSL_CPU", "native")
    return native() if name == "native" else narrowed(name)


@cache
def native() -> Target:
    """This machine in full."""
    _start()
    features = llvm.get_host_cpu_features()
    listed = ",".join(sorted(("+" if on else "-") + name for name, on in features.items()))
    if not _is_x86():
        return Target(llvm.get_process_triple(), llvm.get_host_cpu_name(), listed, 128, True, True)
    bits = 128
    if features.get("avx2"):
        bits = 256
    if all(features.get(name) for name in ("avx512f", "avx512bw", "avx512dq", "avx512vl")):
        bits = 512
    return Target(
        llvm.get_process_triple(),
        llvm.get_host_cpu_name(),
        listed,
        bits,
        bool(features.get("fma")),
        bool(features.get("sse4.1")),
    )


def narrowed(name: str) -> Target:
    """One of the named lesser machines; on other than x86 there is only the native one."""
    if name not in _NARROWED:
        raise ValueError(f"GRAPHDSL_CPU is `{name}`; it can be native, {', '.join(_NARROWED)}")
    _start()
    if not _is_x86():
        return native()
    cpu, features, bits, fma, rounds = _NARROWED[name]
    return Target(llvm.get_process_triple(), cpu, features, bits, fma, rounds)


def _is_x86() -> bool:
    return platform.machine().lower() in ("x86_64", "amd64")


@cache
def _start() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


@cache
def _machine(target: Target) -> Any:
    _start()
    # Windows: llvmlite's linker wants ELF objects, which only this code model selects there
    model = "jitdefault" if os.name == "nt" else "small"
    chosen = llvm.Target.from_triple(target.triple)
    return chosen.create_target_machine(
        cpu=target.cpu, features=target.features, opt=3, reloc="pic", codemodel=model, jit=True
    )
