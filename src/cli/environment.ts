import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import type { Clock } from '../../raft/index.ts';
import { createSystemClock } from '../clock.ts';
import { EvenkeelError } from '../errors.ts';
import type { Net } from '../net.ts';
import { createWebSocketNet } from '../net-ws.ts';

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

export function processEnvironment(): CliEnvironment {
  // Whoever read the output has had enough of it (`| head`).
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    process.exit(0);
  });
  return {
    net: createWebSocketNet(),
    clock: createSystemClock(),
    env: process.env,
    out: (data) => void process.stdout.write(data),
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
