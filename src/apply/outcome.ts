import type { ErrorCode } from '../errors.ts';

/** What a command did: a value, or the reason why nothing was written. */
export type Outcome =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly code: ErrorCode; readonly message: string };

/** Work that stops after every row it looks at or writes, so that an entry of many rows takes several turns. */
export type Sliced<T> = Generator<void, T, void>;

export function done(value: unknown): Outcome {
  return { ok: true, value };
}

export function refuse(code: ErrorCode, message: string): Outcome {
  return { ok: false, code, message };
}

/** The first few names of a list, for a message. */
export function someOf(names: readonly string[]): string {
  const shown = names.slice(0, 10).join(', ');
  return names.length > 10 ? `${shown} and ${names.length - 10} more` : shown;
}
