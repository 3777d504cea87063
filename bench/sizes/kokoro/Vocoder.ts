// The synthesis half of Kokoro: decoder, harmonic source and iSTFT generator.
import type { Graph } from "../onnx/Graph.ts"
import { residual } from "./Front.ts"
import { adaptive, conv, filled, leaky, linear, swapped, upsample } from "./Layers.ts"

const sampleRateHz = 24_000
/** Number of samples for each value of the pitch curve. */
const pitchHop = 300
const harmonicCount = 9

/** The Fourier transform of the vocoder: frames of 20 samples, one every 5 samples. */
const fft = 20
const hop = 5
const bins = fft / 2 + 1

/** Of 20 samples; the part behind the real one is the imaginary one. */
const hann = (n: number): number => 0.5 - 0.5 * Math.cos((2 * Math.PI * n) / fft)

const forward = (): Float32Array =>
  Float32Array.from({ length: 2 * bins * fft }, (_, i) => {
    const row = Math.floor(i / fft)
    const n = i % fft
    const angle = (2 * Math.PI * (row % bins) * n) / fft
    return hann(n) * (row < bins ? Math.cos(angle) : -Math.sin(angle))
  })

/** Overlapping windows add up to 1.5 times their square. */
const inverse = (): Float32Array =>
  Float32Array.from(forward(), (value, i) => {
    const bin = Math.floor(i / fft) % bins
    return (value * (bin === 0 || bin === bins - 1 ? 1 : 2)) / fft / 1.5
  })

/** x + sin²(αx)/α */
const snake = (graph: Graph, x: string, name: string, channels: number): string => {
  const alpha = filled(graph, `${name}.alpha`, [1, channels, 1], 1)
  const sine = graph.op("Sin", [graph.op("Mul", [alpha, x])])
  const square = graph.op("Mul", [sine, sine])
  return graph.op("Add", [x, graph.op("Mul", [graph.op("Reciprocal", [alpha]), square])])
}

const resonant = (
  graph: Graph,
  x: string,
  style: string,
  name: string,
  channels: number,
  kernel: number,
): string => {
  let sum = x
  for (const [i, dilation] of [1, 3, 5].entries()) {
    const same = { from: channels, to: channels, kernel, gain: 0.5 }
    const first = snake(
      graph,
      adaptive(graph, sum, style, `${name}.adain1.${i}`, channels),
      `${name}.snake1.${i}`,
      channels,
    )
    const middle = conv(graph, first, `${name}.convs1.${i}`, { ...same, dilation })
    const second = snake(
      graph,
      adaptive(graph, middle, style, `${name}.adain2.${i}`, channels),
      `${name}.snake2.${i}`,
      channels,
    )
    sum = graph.op("Add", [sum, conv(graph, second, `${name}.convs2.${i}`, same)])
  }
  return sum
}

/** Repeats each frame of [1, channels, n] `times` times. */
const stretched = (graph: Graph, x: string, times: number, mode: "nearest" | "linear"): string => {
  const scales = graph.op("Constant", [], {
    value: { tensor: { type: "float32", dims: [3], values: [1, 1, times] } },
  })
  return graph.op("Resize", [x, "", scales], { mode, coordinate_transformation_mode: "asymmetric" })
}

/** Nine harmonics of the pitch, mixed: spectrum and phase, [1, 22, 24 × … + 1]. */
const harmonics = (graph: Graph, pitch: string): string => {
  const multiples = graph.floats("generator.harmonics", [1, harmonicCount, 1], () =>
    Float32Array.from({ length: harmonicCount }, (_, i) => ((i + 1) * pitchHop) / sampleRateHz),
  )
  const cycles = graph.op("CumSum", [graph.op("Mul", [pitch, multiples]), graph.scalar(2, "int64")])
  const phase = stretched(graph, cycles, pitchHop, "linear")
  const sines = graph.op("Sin", [graph.op("Mul", [phase, graph.scalar(2 * Math.PI)])])
  const voiced = graph.cast(
    graph.op("Greater", [stretched(graph, pitch, pitchHop, "nearest"), graph.scalar(10)]),
    "float32",
  )
  const audible = swapped(graph, graph.op("Mul", [graph.op("Mul", [sines, graph.scalar(0.1)]), voiced]))
  const mixed = linear(graph, audible, "generator.m_source.l_linear", harmonicCount, 1)
  const source = swapped(graph, graph.op("Tanh", [mixed]))
  const transformed = graph.op(
    "Conv",
    [source, graph.floats("generator.stft", [2 * bins, 1, fft], forward)],
    {
      dilations: [1],
      group: 1,
      kernel_shape: [fft],
      pads: [fft / 2, fft / 2],
      strides: [hop],
    },
  )
  const [real, imaginary] = halves(graph, transformed)
  const power = graph.op("Add", [graph.op("Mul", [real, real]), graph.op("Mul", [imaginary, imaginary])])
  const size = graph.op("Sqrt", [graph.op("Add", [power, graph.scalar(1e-9)])])
  const angle = graph.op("Atan", [graph.op("Div", [imaginary, graph.op("Add", [real, graph.scalar(1e-5)])])])
  return graph.op("Concat", [size, angle], { axis: 1 })
}

const halves = (graph: Graph, x: string): readonly [string, string] => {
  const parts = [graph.fresh("first"), graph.fresh("second")] as const
  graph.op("Split", [x, graph.ints(bins, bins)], { axis: 1 }, parts)
  return parts
}

const stages = [
  { from: 512, to: 256, kernel: 20, stride: 10, padding: 5, sourceKernel: 12, sourceStride: 6, resonance: 7 },
  { from: 256, to: 128, kernel: 12, stride: 6, padding: 3, sourceKernel: 1, sourceStride: 1, resonance: 11 },
] as const

/** Samples, [1, 600 × frames]. */
const generator = (graph: Graph, decoded: string, style: string, pitch: string): string => {
  const source = harmonics(graph, pitch)
  let x = decoded
  for (const [i, stage] of stages.entries()) {
    const { resonance, sourceKernel, sourceStride, to } = stage
    const name = `generator.${i}`
    const excitation = conv(graph, source, `${name}.noise_conv`, {
      from: 2 * bins,
      to,
      kernel: sourceKernel,
      stride: sourceStride,
      padding: Math.floor(sourceKernel / 4),
    })
    const beside = resonant(graph, excitation, style, `${name}.noise_res`, to, resonance)
    let grown = upsample(graph, leaky(graph, x, 0.1), `${name}.ups`, stage)
    // The transform has one frame more than hops.
    if (i === stages.length - 1) {
      grown = graph.op("Pad", [grown, graph.ints(0, 0, 1, 0, 0, 0)], { mode: "reflect" })
    }
    const sum = graph.op("Add", [grown, beside])
    const blocks = [3, 7, 11].map((kernel) =>
      resonant(graph, sum, style, `${name}.resblock.${kernel}`, to, kernel),
    )
    x = graph.op("Div", [graph.op("Sum", blocks), graph.scalar(blocks.length)])
  }
  const last = conv(graph, leaky(graph, x, 0.01), "generator.conv_post", {
    from: 128,
    to: 2 * bins,
    kernel: 7,
    gain: 0.2,
  })
  const [loudness, turn] = halves(graph, last)
  const size = graph.op("Exp", [loudness])
  const phase = graph.op("Sin", [turn])
  const spectrum = graph.op(
    "Concat",
    [graph.op("Mul", [size, graph.op("Cos", [phase])]), graph.op("Mul", [size, graph.op("Sin", [phase])])],
    { axis: 1 },
  )
  const wave = graph.op(
    "ConvTranspose",
    [spectrum, graph.floats("generator.istft", [2 * bins, 1, fft], inverse)],
    {
      dilations: [1],
      group: 1,
      kernel_shape: [fft],
      pads: [fft / 2, fft / 2],
      strides: [hop],
    },
  )
  return graph.op("Squeeze", [wave, graph.ints(1)])
}

const alignedWidth = 512
const deep = 1_024
const besideWidth = 64

/** Samples of the speech. `aligned`: features of the symbols by frame, [1, 512, frames]; the curves have two values a frame. */
export const vocoder = (
  graph: Graph,
  aligned: string,
  pitch: string,
  loudness: string,
  style: string,
): string => {
  const halved = (curve: string, name: string) =>
    conv(graph, curve, `decoder.${name}_conv`, { from: 1, to: 1, kernel: 3, stride: 2 })
  const curves = [halved(pitch, "F0"), halved(loudness, "N")]
  const together = graph.op("Concat", [aligned, ...curves], { axis: 1 })
  let x = residual(graph, together, style, "decoder.encode", { from: alignedWidth + 2, to: deep })
  const beside = conv(graph, aligned, "decoder.asr_res", { from: alignedWidth, to: besideWidth, kernel: 1 })
  for (let block = 0; block < 4; block++) {
    const last = block === 3
    const input = graph.op("Concat", [x, beside, ...curves], { axis: 1 })
    x = residual(graph, input, style, `decoder.decode.${block}`, {
      from: deep + besideWidth + 2,
      to: last ? 512 : deep,
      twice: last,
    })
  }
  return generator(graph, x, style, pitch)
}
