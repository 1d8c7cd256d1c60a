import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import type { Clock } from '../../raft/index.ts';
import { createSystemClock } from '../clock.ts';
import { EvenkeelError } from '../errors.ts';
import type { Net } from '../net.ts';
import { createWebSocketNet } from '../net-ws.ts';
import { printableLines } from './output.ts';
import { openStandardOutput } from './standard-output.ts';

/** The exit code where standard output cannot be written. */
const OUTPUT_FAILED = 1;

/** Each asks for an orderly end. Node takes no notice of `nohup`: without a listener SIGHUP would end the process at once. */
const INTERRUPTS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** What a command touches of the world; tests give their own. */
export interface CliEnvironment {
  readonly net: Net;
  readonly clock: Clock;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Data goes here. */
  readonly out: (text: string) => void;
  /** All else goes here. What could steer a terminal is escaped. */
  readonly note: (text: string) => void;
  /** Whether `out` is a terminal. */
  readonly terminal: boolean;
  /** A file's text; `-` is standard input. Rejects with `not_found` or `invalid_argument`. */
  readonly readText: (path: string) => Promise<string>;
  /** Calls back at the first SIGINT, SIGTERM or SIGHUP. Returns what takes the callback back. */
  readonly onInterrupt: (callback: (signal: string) => void) => () => void;
  /**
   * For what runs on without its output: from here on a failed write of it calls back, with the system's code, and ends
   * nothing.
   */
  readonly onOutputLost: (callback: (code: string) => void) => void;
}

/** The environment of this process. */
export interface ProcessEnvironment extends CliEnvironment {
  /** Resolves once all that went out has left this process, or is on disk where it went to a file. */
  readonly flush: () => Promise<void>;
}

export function processEnvironment(): ProcessEnvironment {
  let onLost: (code: string) => void = outputFailed;
  const output = openStandardOutput((code) => onLost(code));
  return {
    net: createWebSocketNet(),
    clock: createSystemClock(),
    env: process.env,
    out: (data) => output.write(data),
    flush: () => output.flush(),
    note: (data) => void process.stderr.write(printableLines(data)),
    terminal: process.stdout.isTTY,
    readText,
    onInterrupt(callback) {
      for (const signal of INTERRUPTS) process.once(signal, callback);
      return () => {
        for (const signal of INTERRUPTS) process.removeListener(signal, callback);
      };
    },
    onOutputLost: (callback) => void (onLost = callback),
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
