import { Packr } from 'msgpackr';

const packr = new Packr({ useRecords: false });

/** Frames as any client in any language would make and read them. */
export function encode(message: object, binary: boolean): string | Uint8Array {
  return binary ? new Uint8Array(packr.pack(message)) : JSON.stringify(message);
}

export function decode(frame: string | Uint8Array): Record<string, unknown> {
  return (typeof frame === 'string' ? JSON.parse(frame) : packr.unpack(frame)) as Record<string, unknown>;
}
