import { ERRORS, EvenkeelError, type ErrorCode } from '../errors.ts';
import { Fields, Malformed } from './fields.ts';
import type { CommandResult } from './types.ts';

/** Checked reading of what applying answered, from a snapshot or another member. */
export function readResult(value: unknown, path: string): CommandResult {
  const f = new Fields(value, path);
  const ok = f.boolean('ok');
  const revision = f.integer('revision');
  const result: CommandResult = ok
    ? { ok, revision, value: f.take('value') }
    : { ok, revision, error: readError(f.fields('error')) };
  f.end();
  return result;
}

/** What a caller sees of a refusal. */
export function errorOf(result: Extract<CommandResult, { ok: false }>): EvenkeelError {
  return new EvenkeelError(result.error.code, result.error.message, { revision: result.revision });
}

function readError(f: Fields): { code: ErrorCode; message: string } {
  const code = f.string('code');
  if (!isErrorCode(code)) throw new Malformed(`${f.path}.code`, 'is not a known error code');
  const error = { code, message: f.string('message') };
  f.end();
  return error;
}

function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(ERRORS, code);
}
