import { Argument, type Command } from 'commander';
import type { CliEnvironment } from './environment.ts';

const SHELLS = ['bash', 'zsh', 'fish'] as const;

export function addCompletion(program: Command, environment: CliEnvironment): void {
  program
    .command('completion')
    .description('print a script that completes commands and options')
    .addArgument(new Argument('<shell>', 'for this shell').choices(SHELLS))
    .action((shell: (typeof SHELLS)[number]) => {
      environment.out(script(shell, wordsByPath(program)));
    });
}

/** What may follow each path of commands: `broker` → `list show …`. */
function wordsByPath(program: Command): Map<string, string[]> {
  const words = new Map<string, string[]>();
  const visit = (command: Command, path: readonly string[]): void => {
    const children = command.commands.map((child) => child.name());
    const options = command.options.flatMap(({ long }) =>
      long === null || long === undefined ? [] : [long],
    );
    words.set(path.join(' '), [...children, ...options, '--help']);
    for (const child of command.commands) visit(child, [...path, child.name()]);
  };
  visit(program, []);
  return words;
}

function script(shell: (typeof SHELLS)[number], words: ReadonlyMap<string, readonly string[]>): string {
  switch (shell) {
    case 'bash':
      return `${bashFunction(words)}complete -F _evenkeel evenkeel\n`;
    case 'zsh':
      return `autoload -U +X bashcompinit && bashcompinit\n${bashFunction(words)}complete -F _evenkeel evenkeel\n`;
    case 'fish':
      return fishLines(words);
  }
}

function bashFunction(words: ReadonlyMap<string, readonly string[]>): string {
  const cases = [...words].map(([path, next]) => `    '${path}') words='${next.join(' ')}' ;;`);
  return `_evenkeel() {
  local path='' words='' word
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$word" in -*) ;; *) path="\${path:+$path }$word" ;; esac
  done
  while :; do
    case "$path" in
${cases.join('\n')}
    *) path="\${path% *}"; continue ;;
    esac
    break
  done
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
`;
}

function fishLines(words: ReadonlyMap<string, readonly string[]>): string {
  const lines = [...words].map(([path, next]) => {
    const seen =
      path === '' ? '__fish_use_subcommand' : `__fish_seen_subcommand_from ${path.split(' ').at(-1)}`;
    return `complete -c evenkeel -f -n '${seen}' -a '${next.join(' ')}'`;
  });
  return `${lines.join('\n')}\n`;
}
