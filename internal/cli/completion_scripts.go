package cli

// completionScripts ask the program itself (__complete) for every word, so that they know the names in the store and never go stale.
var completionScripts = map[string]string{
	"bash": `# bash completion for chatctx
_chatctx() {
    local rest=$COMP_LINE words=() i part line
    # bash splits words at ":" and "=", which may stand in names: join again what has no space between.
    for ((i = 0; i <= COMP_CWORD; i++)); do
        part=${COMP_WORDS[i]}
        if [[ $i -gt 0 && $rest == "$part"* && -n $part ]]; then
            words[${#words[@]}-1]+=$part
        else
            words+=("$part")
            rest=${rest#"${rest%%[![:space:]]*}"}
        fi
        rest=${rest#"$part"}
    done
    local word=${words[${#words[@]}-1]} last=${COMP_WORDS[COMP_CWORD]} quote=
    [[ $last == [:=] ]] && last=
    local before=${word%"$last"}
    case $word in
        \"* | \'*) quote=1 word=${word:1} before= ;;
        *) word=${word//\\/} ;;
    esac
    words[${#words[@]}-1]=$word
    for ((i = 1; i < ${#words[@]} - 1; i++)); do
        part=${words[i]}
        case $part in
            \"*\" | \'*\') part=${part:1:${#part}-2} ;;
            *) part=${part//\\/} ;;
        esac
        words[i]=$part
    done
    COMPREPLY=()
    while IFS=$'\t' read -r line _; do
        [[ -n $line ]] || continue
        line=${line#"$before"}
        [[ $quote ]] || printf -v line %q "$line"
        line=${line//\\,/,} # %q puts a backslash before a comma, and what is typed has none
        COMPREPLY+=("$line")
    done < <("${COMP_WORDS[0]}" __complete -- "${words[@]:1}" 2>/dev/null)
}
complete -o default -o nosort -F _chatctx chatctx 2>/dev/null || complete -o default -F _chatctx chatctx
`,
	"zsh": `#compdef chatctx
# zsh completion for chatctx
_chatctx() {
    local -a found line
    local word hint
    line=("${(@Q)words[2,CURRENT]}")
    line[-1]=${line[-1]#[\"\']}
    while IFS=$'\t' read -r word hint; do
        [[ -n $word ]] && found+=("${word//:/\\:}${hint:+:$hint}")
    done < <("${words[1]}" __complete -- "${line[@]}" 2>/dev/null)
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
    set -l word (commandline -ct | string trim --left --chars '"\'')
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
    if (-not $word -and $PSVersionTable.PSVersion -lt [version]'7.3') { $word = '""' } # else nothing is passed on
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
