package cli

// completionScripts ask the program itself (__complete) for every word, so that they know the names in the store and never
// go stale.
var completionScripts = map[string]string{
	"bash": `# bash completion for chatctx
_chatctx() {
    local cur words=() line word candidates=()
    cur="${COMP_LINE:0:COMP_POINT}"
    # bash splits words at ":" and "=", which stand in our names: take the words from the line instead.
    words=("${COMP_WORDS[@]:1:COMP_CWORD}")
    if declare -F _get_comp_words_by_ref >/dev/null; then
        local cur prev cword
        _get_comp_words_by_ref -n :=@ -w words -i cword cur prev
        words=("${words[@]:1:cword}")
    fi
    word="${words[${#words[@]}-1]}"
    word="${word#[\"\']}"
    words[${#words[@]}-1]="${word//\\/}"
    while IFS=$'\t' read -r line _; do
        [[ -n $line ]] && candidates+=("$(printf '%q' "$line")")
    done < <("${COMP_WORDS[0]}" __complete -- "${words[@]}" 2>/dev/null)
    COMPREPLY=("${candidates[@]}")
    if declare -F __ltrim_colon_completions >/dev/null; then
        __ltrim_colon_completions "$word"
    fi
}
complete -o default -o nosort -F _chatctx chatctx 2>/dev/null || complete -o default -F _chatctx chatctx
`,
	"zsh": `#compdef chatctx
# zsh completion for chatctx
_chatctx() {
    local -a found
    local word hint
    while IFS=$'\t' read -r word hint; do
        [[ -n $word ]] && found+=("${word//:/\\:}${hint:+:$hint}")
    done < <("${words[1]}" __complete -- "${(@Q)words[2,CURRENT]}" 2>/dev/null)
    if (( ${#found} )); then
        _describe -V chatctx found
    else
        _files
    fi
}
if [[ $funcstack[1] == _chatctx ]]; then
    _chatctx "$@"
else
    compdef _chatctx chatctx
fi
`,
	"fish": `# fish completion for chatctx
function __chatctx_complete
    set -l words (commandline -opc)
    set -l word (commandline -ct)
    $words[1] __complete -- $words[2..-1] "$word" 2>/dev/null
end
complete -c chatctx -f -a '(__chatctx_complete)'
complete -c chatctx -n 'test (count (__chatctx_complete)) -eq 0' -F
`,
	"powershell": `# PowerShell completion for chatctx
Register-ArgumentCompleter -Native -CommandName chatctx -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $words = @($commandAst.CommandElements | Select-Object -Skip 1 | Where-Object { $_.Extent.EndOffset -lt $cursorPosition } | ForEach-Object {
        if ($_ -is [System.Management.Automation.Language.StringConstantExpressionAst]) { $_.Value } else { $_.Extent.Text }
    })
    $word = $wordToComplete.Trim("'", '"')
    & $commandAst.CommandElements[0].Value __complete -- @words "$word" 2>$null | ForEach-Object {
        $text, $hint = $_ -split [char]9, 2
        if (-not $hint) { $hint = $text }
        $quoted = $text
        if ($text -match "[\s'(){};&|<>@#,` + "`" + `$]") { $quoted = "'" + $text.Replace("'", "''") + "'" }
        [System.Management.Automation.CompletionResult]::new($quoted, $text, 'ParameterValue', $hint)
    }
}
`,
}
