import type { ResourceKind } from '../../placement/index.ts';

const SEGMENT = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
const MAX_SEGMENTS = 3;
const SEGMENT_RULE =
  'must begin with a letter or digit and hold at most 128 letters, digits, ".", "_" and "-"';

/** What is wrong with a broker, zone or node id; `null`: nothing. */
export function idProblem(what: string, id: string): string | null {
  return SEGMENT.test(id) ? null : `${what} ${quote(id)} ${SEGMENT_RULE}`;
}

/** What is wrong with a resource's name: 1 to 3 segments joined by `/`. */
export function resourceNameProblem(name: string): string | null {
  const segments = name.split('/');
  if (segments.length > MAX_SEGMENTS) {
    return `resource name ${quote(name)} has ${segments.length} segments, at most ${MAX_SEGMENTS} are allowed`;
  }
  const bad = segments.find((segment) => !SEGMENT.test(segment));
  return bad === undefined
    ? null
    : `resource name ${quote(name)}: each segment between "/" ${SEGMENT_RULE}; ${quote(bad)} does not`;
}

export interface ShardName {
  readonly kind: ResourceKind;
  readonly name: string;
  readonly number: number;
}

/** `stream:orders/3` in its parts; `null` where it is no shard's name. */
export function parseShard(shard: string): ShardName | null {
  const match = /^(stream|cache):(.+)\/(0|[1-9][0-9]{0,8})$/.exec(shard);
  const [, kind, name, number] = match ?? [];
  if (kind === undefined || name === undefined || number === undefined) return null;
  if (resourceNameProblem(name) !== null) return null;
  return { kind: kind === 'cache' ? 'cache' : 'stream', name, number: Number(number) };
}

/** `stream:orders` in its parts; the kind is `stream` where none is given. `null` where it is no resource's name. */
export function parseResource(text: string): { kind: ResourceKind; name: string } | null {
  const match = /^(?:(stream|cache):)?(.+)$/.exec(text);
  const name = match?.[2];
  if (name === undefined || resourceNameProblem(name) !== null) return null;
  return { kind: match?.[1] === 'cache' ? 'cache' : 'stream', name };
}

/** Control characters, and those that turn text around or break lines: nothing that is printed may carry them. */
const UNPRINTABLE = /[\p{Cc}\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/u;

/** What is wrong with free text that tables and logs show; `null`: nothing. */
export function textProblem(what: string, text: string): string | null {
  return UNPRINTABLE.test(text)
    ? `${what} ${quote(text)} has a control character: use letters, digits, signs and spaces`
    : null;
}

/** Text of others as it may be printed: what could forge a row or steer a terminal is escaped. */
export function printable(text: string): string {
  const all = new RegExp(UNPRINTABLE, 'gu');
  return text.replace(all, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** A string as messages show it: cut, and with control characters escaped. */
export function quote(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}
