import { EvenkeelError } from '../errors.ts';

/** What this member stored is damaged or incomplete. It must not serve, vote or replicate from it. */
export function damaged(directory: string, what: string): EvenkeelError {
  return new EvenkeelError(
    'corrupt',
    `the data directory ${directory} is damaged: ${what}. Move it aside and start this member with an empty one: ` +
      'the others hold everything that was committed and send it again',
  );
}
