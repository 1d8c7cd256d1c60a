import { EvenkeelError } from '../errors.ts';
import { quote } from './names.ts';

/** `<session>:<n>` in its parts (contract, "Admin RPC"); throws `invalid_argument`. */
export function parseRequestId(text: string): { session: number; n: number } {
  const match = /^([1-9][0-9]{0,15}):(0|[1-9][0-9]{0,15})$/.exec(text);
  const session = Number(match?.[1]);
  const n = Number(match?.[2]);
  if (!Number.isSafeInteger(session) || !Number.isSafeInteger(n)) {
    throw new EvenkeelError(
      'invalid_argument',
      `requestId ${quote(text)} must be <session>:<n>: a session that session.open gave, and a number that rises`,
    );
  }
  return { session, n };
}
