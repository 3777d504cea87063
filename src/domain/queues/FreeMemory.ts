/**
 * Gives the memory of large bytes back at once; they are empty afterwards. The collector would find it late, because it is not in the heap,
 * and V8 collects the whole heap when such memory has grown by 64 MiB. Bytes that are only a part of their buffer are left to it, as others
 * may use the rest; so are all with Node 20.
 */
export const freeMemory = ({ buffer, byteLength }: Uint8Array): void => {
  if (buffer instanceof ArrayBuffer && byteLength === buffer.byteLength && "transfer" in buffer)
    buffer.transfer(0)
}
