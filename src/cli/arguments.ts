import { InvalidArgumentError } from 'commander';
import { parseResource, quote } from '../command/index.ts';
import type { ResourceKind } from '../../placement/index.ts';
import { EvenkeelError } from '../errors.ts';

/** `500ms`, `10s`, `5m`, `1h`; in ms. */
export function parseDuration(text: string): number {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h)$/.exec(text);
  const unit = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 }[match?.[2] ?? ''];
  const value = Math.round(Number(match?.[1]) * (unit ?? NaN));
  if (!Number.isSafeInteger(value) || value <= 0) {
    throw new InvalidArgumentError('It must be a duration like 500ms, 10s or 5m.');
  }
  return value;
}

/** The longest that a call may be given, ms: a node refuses more (`MAX_DEADLINE_MS`). */
export const MAX_TIMEOUT_MS = 60_000;

export function parseTimeout(text: string): number {
  const value = parseDuration(text);
  if (value > MAX_TIMEOUT_MS)
    throw new InvalidArgumentError(`It must be at most ${MAX_TIMEOUT_MS / 1_000}s.`);
  return value;
}

export function parseCount(text: string): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(value)) {
    throw new InvalidArgumentError('It must be a whole number.');
  }
  return value;
}

export function parsePositive(text: string): number {
  const value = parseCount(text);
  if (value === 0) throw new InvalidArgumentError('It must be 1 or more.');
  return value;
}

/** Gathers `k=v` into a map; with `removable`, `k-` means that the label goes. */
export function collectLabels(removable: boolean) {
  return (text: string, before: Record<string, string | null> = {}): Record<string, string | null> => {
    const match = /^([^=]+)=(.*)$/s.exec(text);
    if (match !== null) return { ...before, [match[1] ?? '']: match[2] ?? '' };
    if (removable && text.endsWith('-') && text.length > 1) return { ...before, [text.slice(0, -1)]: null };
    throw new InvalidArgumentError(`It must be key=value${removable ? ', or key- to remove it' : ''}.`);
  };
}

/** `orders`, `stream:orders` or `cache:kv`. A kind said in the name and by the command must agree. */
export function resourceArgument(
  text: string,
  kind: ResourceKind | undefined,
): { kind: ResourceKind; name: string } {
  const named = parseResource(text);
  if (named === null) {
    const rule = 'segments of letters, digits, ".", "_" and "-", 1 to 3 of them joined by "/"';
    throw new EvenkeelError('invalid_argument', `${quote(text)} is no resource's name: ${rule}`);
  }
  if (kind === undefined) return named;
  if (text.includes(':') && named.kind !== kind) {
    throw new EvenkeelError('invalid_argument', `"${text}" is a ${named.kind}, and a ${kind} was asked for`);
  }
  return { kind, name: named.name };
}
