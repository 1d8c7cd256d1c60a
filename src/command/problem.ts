import type { ErrorCode } from '../errors.ts';

/** What is wrong with a command by itself, whatever the state; its message names what and says the limit. */
export interface Problem {
  readonly code: Extract<ErrorCode, 'invalid_argument' | 'limit_exceeded'>;
  readonly message: string;
}

export function invalid(message: string): Problem {
  return { code: 'invalid_argument', message };
}

export function over(message: string): Problem {
  return { code: 'limit_exceeded', message };
}
