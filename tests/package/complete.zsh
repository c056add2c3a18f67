# SPDX-License-Identifier: Apache-2.0
# What does zsh make of a line when Tab is pressed behind it?
#   zsh -f complete.zsh FOLDER LINE
# FOLDER holds the completion function. Prints the line as it is then.
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PS1= PS2= RPS1=; unset zle_bracketed_paste; fpath=(${(q)1} \$fpath)"
zpty -w shell 'autoload -Uz compinit; compinit -u -D; show() { print -r -- "<<<$BUFFER>>>" }'
zpty -w shell 'zle -N show; bindkey "^I" complete-word; bindkey "^X" show; print READY-$((1 + 1))'
zpty -r shell answer '*READY-2*'
zpty -w -n shell "$2"$'\t'$'\C-x'
zpty -r shell answer '*<<<*>>>*'
print -r -- ${${answer#*<<<}%%>>>*}
zpty -d shell
