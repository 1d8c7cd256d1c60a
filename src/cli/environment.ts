import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import type { Clock } from '../../raft/index.ts';
import { createSystemClock } from '../clock.ts';
import { EvenkeelError } from '../errors.ts';
import type { Net } from '../net.ts';
import { createWebSocketNet } from '../net-ws.ts';
import { openStandardOutput } from './standard-output.ts';

/** The exit code where standard output cannot be written. */
const OUTPUT_FAILED = 1;

/** What a command touches of the world; tests give their own. */
export interface CliEnvironment {
  readonly net: Net;
  readonly clock: Clock;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Data goes here. */
  readonly out: (text: string) => void;
  /** All else goes here. */
  readonly note: (text: string) => void;
  /** Whether `out` is a terminal. */
  readonly terminal: boolean;
  /** A file's text; `-` is standard input. Rejects with `not_found` or `invalid_argument`. */
  readonly readText: (path: string) => Promise<string>;
  /** Calls back at the first SIGINT or SIGTERM. The answer takes the callback back. */
  readonly onInterrupt: (callback: () => void) => () => void;
}

/** The environment of this process. */
export interface ProcessEnvironment extends CliEnvironment {
  /** Resolves once all that went out has left this process, or is on disk where it went to a file. */
  readonly flush: () => Promise<void>;
}

export function processEnvironment(): ProcessEnvironment {
  const output = openStandardOutput(outputFailed);
  return {
    net: createWebSocketNet(),
    clock: createSystemClock(),
    env: process.env,
    out: (data) => output.write(data),
    flush: () => output.flush(),
    note: (data) => void process.stderr.write(data),
    terminal: process.stdout.isTTY,
    readText,
    onInterrupt(callback) {
      process.once('SIGINT', callback);
      process.once('SIGTERM', callback);
      return () => {
        process.removeListener('SIGINT', callback);
        process.removeListener('SIGTERM', callback);
      };
    },
  };
}

/** Ends the process. Whoever read a pipe may have had enough of it (`| head`); half a file is an error. */
function outputFailed(code: string): never {
  if (code === 'EPIPE') process.exit(0);
  process.stderr.write(`error: cannot write the output: ${code}; what was written is not complete\n`);
  process.exit(OUTPUT_FAILED);
}

async function readText(path: string): Promise<string> {
  if (path === '-') return text(process.stdin);
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    const missing = code === 'ENOENT';
    throw new EvenkeelError(
      missing ? 'not_found' : 'invalid_argument',
      missing ? `no such file: ${path}` : `cannot read ${path}: ${code}`,
    );
  }
}
