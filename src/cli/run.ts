import { CommanderError, type Command } from 'commander';
import { ERRORS, EvenkeelError } from '../errors.ts';
import type { CliEnvironment } from './environment.ts';
import { shortened } from './output.ts';

const USAGE = 2;

/** Ends the command with this exit code; everything was said already. */
export class CliExit extends Error {
  readonly code: number;

  constructor(code: number) {
    super(`exit ${code}`);
    this.name = 'CliExit';
    this.code = code;
  }
}

/** Runs a command line, `argv` as Node has it. Resolves with the exit code; errors are said on stderr. */
export async function runProgram(
  program: Command,
  argv: readonly string[],
  environment: Pick<CliEnvironment, 'note'>,
): Promise<number> {
  try {
    await program.parseAsync(argv);
    return 0;
  } catch (error) {
    return explain(error, environment);
  }
}

function explain(error: unknown, { note }: Pick<CliEnvironment, 'note'>): number {
  if (error instanceof CliExit) return error.code;
  // Commander has printed its own message already.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : USAGE;
  if (error instanceof EvenkeelError) {
    const outcome = error.data['outcome'] === 'unknown' ? '; outcome unknown' : '';
    note(`error: ${shortened(error.message)} (${error.code}${outcome})\n`);
    return ERRORS[error.code].exit;
  }
  note(`error: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
  return 1;
}
