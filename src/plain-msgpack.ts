import { EvenkeelError } from './errors.ts';

/** Deeper than any message of ours nests. */
export const MAX_MSGPACK_NESTING = 16;
/** Of a key that a message repeats. */
const MAX_KEY_CHARS_SHOWN = 80;

const UTF8 = new TextDecoder('utf-8', { fatal: true });

/** How one value begins: `bytes` of its own (its payload too), and how many values are inside it. */
interface Head {
  readonly kind: 'string' | 'scalar' | 'array' | 'map';
  readonly bytes: number;
  readonly inside: number;
}

/**
 * Walks over MessagePack without building anything of it, and throws `protocol_error` where a decoder would be led astray: a length
 * that the frame does not hold, nesting past the limit, an extension (a decoder may make dates, expressions or code
 * of them), a map's key that is no string, that the map has twice or that a decoder would rename, bytes after the end.
 * Hazard 38. It does not recurse.
 */
export function checkPlainMsgpack(frame: Uint8Array): void {
  const view = new DataView(frame.buffer, frame.byteOffset, frame.byteLength);
  /** What is still to come, by level; in a map, keys and values in turn. */
  const open: { left: number; readonly keys: Set<string> | null }[] = [{ left: 1, keys: null }];
  let at = 0;
  for (let level = open.at(-1); level !== undefined; level = open.at(-1)) {
    if (level.left === 0) {
      open.pop();
      continue;
    }
    const head = headAt(view, at);
    if (level.keys !== null && level.left % 2 === 0) {
      if (head.kind !== 'string') throw refusal('a key that is no string');
      addKey(level.keys, keyText(frame.subarray(at, at + head.bytes)));
    }
    level.left -= 1;
    at += head.bytes;
    // Each value takes a byte at least.
    if (head.inside > view.byteLength - at) throw refusal('a length past its end');
    if (head.kind !== 'array' && head.kind !== 'map') continue;
    if (open.length > MAX_MSGPACK_NESTING) throw refusal(`more than ${MAX_MSGPACK_NESTING} levels`);
    open.push({ left: head.inside, keys: head.kind === 'map' ? new Set() : null });
  }
  if (at !== view.byteLength) throw refusal('bytes after its end');
}

function addKey(keys: Set<string>, key: string): void {
  // msgpackr stores this one under another name.
  if (key === '__proto__') throw refusal('the key "__proto__", which is not allowed');
  if (keys.has(key))
    throw refusal(`the key ${JSON.stringify(key.slice(0, MAX_KEY_CHARS_SHOWN))} twice in a map`);
  keys.add(key);
}

/** The text of a whole string value. Strict UTF-8: a lenient decoder reads different bytes as the same key. */
function keyText(value: Uint8Array): string {
  const code = value[0] ?? 0;
  const head = code < 0xc0 ? 1 : 1 + (1 << (code - 0xd9));
  try {
    return UTF8.decode(value.subarray(head));
  } catch {
    throw refusal('a key that is not UTF-8');
  }
}

/** Payload bytes of the codes 0xca to 0xd3: floats, unsigned and signed integers. */
const NUMBER_BYTES = [4, 8, 1, 2, 4, 8, 1, 2, 4, 8] as const;

function headAt(view: DataView, at: number): Head {
  const code = view.byteLength > at ? view.getUint8(at) : undefined;
  if (code === undefined) throw refusal('a value past its end');
  if (code < 0x80 || code >= 0xe0) return scalar(view, at, 1);
  if (code < 0x90) return { kind: 'map', bytes: 1, inside: 2 * (code & 0x0f) };
  if (code < 0xa0) return { kind: 'array', bytes: 1, inside: code & 0x0f };
  if (code < 0xc0) return { ...scalar(view, at, 1 + (code & 0x1f)), kind: 'string' };
  if (code === 0xc0 || code === 0xc2 || code === 0xc3) return scalar(view, at, 1);
  if (code >= 0xc4 && code <= 0xc6) return sized(view, at, code - 0xc4, 'scalar');
  if (code >= 0xca && code <= 0xd3) return scalar(view, at, 1 + (NUMBER_BYTES[code - 0xca] ?? 0));
  if (code >= 0xd9 && code <= 0xdb) return sized(view, at, code - 0xd9, 'string');
  if (code === 0xdc || code === 0xdd) return counted(view, at, code - 0xdc + 1, 'array');
  if (code === 0xde || code === 0xdf) return counted(view, at, code - 0xde + 1, 'map');
  throw refusal('an extension or a code that means nothing');
}

function scalar(view: DataView, at: number, bytes: number): Head {
  if (bytes > view.byteLength - at) throw refusal('a value past its end');
  return { kind: 'scalar', bytes, inside: 0 };
}

function sized(view: DataView, at: number, size: number, kind: 'string' | 'scalar'): Head {
  return { ...scalar(view, at, 1 + (1 << size) + lengthAt(view, at, size)), kind };
}

function counted(view: DataView, at: number, size: number, kind: 'array' | 'map'): Head {
  const count = lengthAt(view, at, size);
  return { kind, bytes: 1 + (1 << size), inside: kind === 'map' ? 2 * count : count };
}

/** `size`: 0, 1, 2 for 8, 16, 32 bits. */
function lengthAt(view: DataView, at: number, size: number): number {
  scalar(view, at, 1 + (1 << size));
  if (size === 0) return view.getUint8(at + 1);
  return size === 1 ? view.getUint16(at + 1) : view.getUint32(at + 1);
}

function refusal(what: string): EvenkeelError {
  return new EvenkeelError('protocol_error', `the MessagePack frame has ${what}`);
}
