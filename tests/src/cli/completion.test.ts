import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { runCli } from '../../support/cli.ts';

/** What bash would offer for a line whose last word is being typed. */
function complete(script: string, words: readonly string[]): string[] {
  const line = `${script}\nCOMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')})\nCOMP_CWORD=${words.length - 1}\n_evenkeel\nprintf '%s\\n' "\${COMPREPLY[@]}"\n`;
  return execFileSync('bash', ['-c', line], { encoding: 'utf8' }).trim().split('\n');
}

describe('completion', () => {
  it('offers commands, verbs and options to bash', async () => {
    const { code, out } = await runCli(['completion', 'bash']);
    expect(code).toBe(0);
    expect(complete(out, ['evenkeel', 'pla'])).toEqual(['placement', 'plan']);
    expect(complete(out, ['evenkeel', 'placement', 're'])).toEqual(['replication', 'resume']);
    expect(complete(out, ['evenkeel', 'broker', 'drain', 'b1', '--w'])).toEqual(['--wait', '--wait-timeout']);
  });

  it('speaks zsh and fish, and no other shell', async () => {
    expect((await runCli(['completion', 'zsh'])).out).toContain('bashcompinit');
    expect((await runCli(['completion', 'fish'])).out).toContain('complete -c evenkeel');
    expect((await runCli(['completion', 'csh'])).code).toBe(2);
  });
});
