import type { Command } from 'commander';
import { createSystemClock } from '../../src/clock.ts';
import { buildProgram, runProgram, type CliEnvironment } from '../../src/cli/index.ts';
import { EvenkeelError } from '../../src/errors.ts';
import { createWebSocketNet } from '../../src/net-ws.ts';

export interface CliRun {
  readonly code: number;
  readonly out: string;
  readonly note: string;
}

export interface CliOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly files?: Readonly<Record<string, string>>;
  /** Given a function that does what SIGINT would do. */
  readonly onStart?: (interrupt: () => void, seen: () => CliRun) => void;
}

/** Runs a command line in this process, over real sockets. */
export async function runCli(args: readonly string[], options: CliOptions = {}): Promise<CliRun> {
  let out = '';
  let note = '';
  const interrupts = new Set<(signal: string) => void>();
  const environment: CliEnvironment = {
    net: createWebSocketNet(),
    clock: createSystemClock(),
    env: options.env ?? {},
    out: (text) => void (out += text),
    note: (text) => void (note += text),
    terminal: false,
    async readText(path) {
      const text = options.files?.[path];
      if (text === undefined) throw new EvenkeelError('not_found', `no such file: ${path}`);
      return text;
    },
    onInterrupt(callback) {
      interrupts.add(callback);
      return () => void interrupts.delete(callback);
    },
    onOutputLost() {},
  };
  const interrupt = (): void => {
    for (const callback of interrupts) callback('SIGINT');
  };
  options.onStart?.(interrupt, () => ({ code: -1, out, note }));
  const code = await runProgram(buildProgram(environment), ['node', 'evenkeel', ...args], environment);
  return { code, out, note };
}

/** `broker drain`, `plan`: every command that does something, by its words. */
export function leaves(command: Command, path: readonly string[] = []): [string, Command][] {
  if (command.commands.length === 0) return [[path.join(' '), command]];
  return command.commands.flatMap((child) => leaves(child, [...path, child.name()]));
}
